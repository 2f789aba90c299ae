package javatext

// Hash continues a hash of bytes with b, as Hadoop's WritableComparator.hashBytes does, which begins with 1: so Hadoop
// partitions Text and BytesWritable.
func Hash(h int32, b []byte) int32 {
	for len(b) >= 4 { // four steps at once, so that the multiplications overlap
		h = h*(31*31*31*31) + int32(int8(b[0]))*(31*31*31) + int32(int8(b[1]))*(31*31) + int32(int8(b[2]))*31 + int32(int8(b[3]))
		b = b[4:]
	}
	for _, c := range b {
		h = h*31 + int32(int8(c))
	}
	return h
}
