package streaming

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/quernmr/quern/internal/javatext"
)

// keySpec is one -k of KeyFieldBasedPartitioner or KeyFieldBasedComparator: a range of a key, as of sort(1). Fields and
// bytes count from 1.
type keySpec struct {
	beginField, beginByte int
	endField, endByte     int // field 0: the range ends with the key; byte 0: with the field
	numeric, reverse      bool
}

// parseSpecs parses options such as "-k1,1 -k2,2nr". Without any it returns none.
func parseSpecs(options string) (specs []keySpec, err error) {
	var all keySpec
	args := strings.Fields(options)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		text, isKey := strings.CutPrefix(arg, "-k")
		switch {
		case isKey && text == "" && i+1 < len(args):
			i++
			text = args[i]
			fallthrough
		case isKey:
			spec, err := parseSpec(text)
			if err != nil {
				return nil, fmt.Errorf("-k%s: %w", text, err)
			}
			specs = append(specs, spec)
		case strings.HasPrefix(arg, "-") && len(arg) > 1 && strings.Trim(arg[1:], "nr") == "":
			all.numeric = all.numeric || strings.Contains(arg, "n")
			all.reverse = all.reverse || strings.Contains(arg, "r")
		default:
			return nil, fmt.Errorf("%q is none of -kPOS1[,POS2], -n, -r and -nr", arg)
		}
	}
	for i := range specs {
		if s := &specs[i]; !s.numeric && !s.reverse {
			s.numeric, s.reverse = all.numeric, all.reverse
		}
	}
	if len(specs) == 0 && len(args) > 0 {
		specs = []keySpec{{beginField: 1, beginByte: 1, numeric: all.numeric, reverse: all.reverse}}
	}
	return specs, nil
}

// parseSpec parses FIELD[.BYTE][nr][,FIELD[.BYTE][nr]].
func parseSpec(text string) (s keySpec, err error) {
	begin, end, hasEnd := strings.Cut(text, ",")
	s.beginByte = 1
	if err = s.parsePosition(begin, &s.beginField, &s.beginByte); err == nil && hasEnd {
		err = s.parsePosition(end, &s.endField, &s.endByte)
	}
	if err == nil && (s.beginField < 1 || s.beginByte < 1 || hasEnd && s.endField < 1) {
		err = fmt.Errorf("fields and bytes count from 1")
	}
	return s, err
}

func (s *keySpec) parsePosition(text string, field, b *int) (err error) {
	position := strings.TrimRight(text, "nr")
	s.numeric = s.numeric || strings.Contains(text[len(position):], "n")
	s.reverse = s.reverse || strings.Contains(text[len(position):], "r")
	number, offset, hasByte := strings.Cut(position, ".")
	if *field, err = position32(number); err == nil && hasByte {
		*b, err = position32(offset)
	}
	if err != nil {
		return fmt.Errorf("want FIELD[.BYTE], with n and r after it, and after a comma the end of the range")
	}
	return nil
}

// position32 parses a number that Java's int holds. So sums of positions in a key do not overflow.
func position32(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err
}

// cut returns the range of the key; ok is false if the key has no such field or byte.
func (s *keySpec) cut(key, separator []byte) (part []byte, ok bool) {
	from, _, ok := fieldAt(key, separator, s.beginField)
	if from += s.beginByte - 1; !ok || from >= len(key) {
		return nil, false
	}
	to := len(key)
	if s.endField > 0 {
		if begin, end, ok := fieldAt(key, separator, s.endField); ok && s.endByte == 0 {
			to = end
		} else if ok {
			to = min(begin+s.endByte, len(key))
		}
	}
	return key[from:max(from, to)], true
}

// fieldAt returns where a field begins and ends.
func fieldAt(key, separator []byte, n int) (begin, end int, ok bool) {
	for {
		at := bytes.Index(key[begin:], separator)
		if at < 0 {
			return begin, len(key), n == 1
		}
		if n == 1 {
			return begin, begin + at, true
		}
		begin += at + len(separator)
		n--
	}
}

// keyHash is KeyFieldBasedPartitioner.
type keyHash struct {
	specs     []keySpec
	separator []byte
	show      appender // Java's toString; nil: of text
}

func (h *keyHash) hash(key []byte) (sum int32, err error) {
	if h.show != nil {
		if key, err = h.show(nil, key); err != nil {
			return 0, err
		}
	}
	if len(h.specs) == 0 {
		for _, unit := range utf16.Encode([]rune(string(key))) { // String.hashCode
			sum = 31*sum + int32(unit)
		}
		return sum, nil
	}
	for i := range h.specs {
		if part, ok := h.specs[i].cut(key, h.separator); ok {
			sum = javatext.Hash(sum, part)
		}
	}
	return sum, nil
}

// keyOrder is KeyFieldBasedComparator. It encodes a key so that the order of bytes is the comparator's. Each -k gives a
// byte, 0 for a missing field and 1 otherwise, and then the field; all bits of these are inverted for r.
type keyOrder struct {
	specs     []keySpec
	separator []byte
}

func (o *keyOrder) append(dst, key []byte) []byte {
	for i := range o.specs {
		s, start := &o.specs[i], len(dst)
		part, ok := s.cut(key, o.separator)
		switch {
		case !ok:
			dst = append(dst, 0)
		case s.numeric:
			dst = appendNumber(append(dst, 1), part, part[:1][0]) // cut leaves a byte of the key after an empty part
		default:
			dst = append(dst, 1)
			for _, b := range part {
				if dst = append(dst, b); b == 0 {
					dst = append(dst, 1)
				}
			}
			dst = append(dst, 0, 0)
		}
		if s.reverse {
			invert(dst[start:])
		}
	}
	return dst
}

// appendNumber encodes a decimal number of any length: a byte for its sign (0 negative, 1 zero, 2 positive), the number of
// digits before the point in four bytes, these digits, those after the point, 0, and a byte for what follows the digits. A
// zero has only its sign and this last byte. All but the sign are inverted for a negative number. A text that does not
// begin with a number is 0.
//
// Hadoop compares numbers with equal digits by the byte after them, as Java's byte with a sign. At the end of the field it
// takes the field's first byte instead, and the separator if the field is empty: so an empty field is less than 0, which is
// less than a word, and 01 is less than 1. Hadoop takes 0.0 for equal to 0 and to each word, and 1.0 for equal to 1, 01 and
// 1a, which is no order: here 0.0 is 0, and 1.0 is 1.
func appendNumber(dst, text []byte, first byte) []byte {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	whole := digits(text)
	fraction, after := []byte(nil), first
	rest := text[len(whole):]
	point := len(rest) > 0 && rest[0] == '.'
	if point {
		fraction = bytes.TrimRight(digits(rest[1:]), "0")
	} else if len(rest) > 0 {
		after = rest[0]
	}
	if whole = bytes.TrimLeft(whole, "0"); len(whole) == 0 && len(fraction) == 0 {
		if negative || point {
			after = '0'
		}
		return append(dst, 1, after^0x80)
	}
	if negative {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 2)
	}
	if len(fraction) > 0 {
		after = 0 // what follows a fraction does not count
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(whole)))
	dst = append(append(append(dst, whole...), fraction...), 0, after^0x80)
	if negative {
		invert(dst[start:])
	}
	return dst
}

func digits(text []byte) []byte {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return text[:n]
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// order sets how map output is ordered and partitioned.
func (c *compiled) order() error {
	separator := []byte(c.get(keyFieldSeparator, "\t"))
	if class := c.plan.Properties[comparatorClass]; class != "" {
		if _, err := comparators.class(class); err != nil {
			return err
		}
		specs, err := parseSpecs(c.plan.Properties[comparatorOptions])
		if err != nil {
			return fmt.Errorf("property %s: %w", comparatorOptions, err)
		}
		if len(specs) > 0 {
			c.keys = &keyOrder{specs, separator}
		}
	}
	class := c.Partitioner
	if class == "" && c.plan.Properties[partitionerClass] != "" {
		var err error
		if class, err = partitioners.class(c.plan.Properties[partitionerClass]); err != nil {
			return err
		}
	}
	if class != keyFieldPartitioner {
		return nil
	}
	c.parts = &keyHash{separator: separator}
	if c.mapped.key != textClass {
		c.parts.show = asText(c.mapped.key)
	}
	if fields, err := c.number(partitionFields, 0); err != nil {
		return err
	} else if fields > 0 {
		c.parts.specs = []keySpec{{beginField: 1, beginByte: 1, endField: fields}}
		return nil
	}
	var err error
	if c.parts.specs, err = parseSpecs(c.plan.Properties[partitionerOptions]); err != nil {
		return fmt.Errorf("property %s: %w", partitionerOptions, err)
	}
	return nil
}

// partition returns a key's partition of n.
func (c *compiled) partition(key []byte, n int) (int, error) {
	var h int32
	var err error
	switch {
	case c.parts != nil:
		h, err = c.parts.hash(key)
	case c.mapped.key == longClass:
		h = int32(binary.BigEndian.Uint64(key))
	default:
		h = javatext.Hash(1, key)
	}
	return int((uint32(h) & math.MaxInt32) % uint32(n)), err
}
