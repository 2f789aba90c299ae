package writable

import (
	"fmt"

	"github.com/quernmr/quern/internal/javatext"
)

// AppendJava appends a value as Java shows it. Entries of maps are in the order of the file.
func AppendJava(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return javatext.AppendUTF8(dst, v)
	case []byte:
		for i, b := range v {
			if i > 0 {
				dst = append(dst, ' ')
			}
			dst = fmt.Appendf(dst, "%02x", b)
		}
		return dst
	case float32:
		return javatext.AppendFloat(dst, float64(v), 32)
	case float64:
		return javatext.AppendFloat(dst, v, 64)
	case struct{}:
		return append(dst, "(null)"...)
	case []Entry[any, any]:
		dst = append(dst, '{')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = AppendJava(dst, e.Key)
			dst = append(dst, '=')
			dst = AppendJava(dst, e.Value)
		}
		return append(dst, '}')
	default: // booleans and integers
		return fmt.Append(dst, v)
	}
}
