package streaming

import "bytes"

// splitting says where a line is cut into key and value.
type splitting struct {
	separator []byte
	fields    int // the key has so many fields; 0 is 1
}

// cut cuts a line at the separator after the key's last field. With fewer fields, all of the line is the key.
func (s splitting) cut(line []byte) (key, value []byte) {
	var at int
	if len(s.separator) == 1 {
		at = bytes.IndexByte(line, s.separator[0])
	} else {
		at = bytes.Index(line, s.separator)
	}
	for n := 1; n < s.fields && at >= 0; n++ {
		from := at + len(s.separator)
		if at = bytes.Index(line[from:], s.separator); at >= 0 {
			at += from
		}
	}
	if at < 0 {
		return line, nil
	}
	return line[:at], line[at+len(s.separator):]
}
