package parquetfile

import "encoding/binary"

// padding is the number of bytes after encoded data that may be read, but have no meaning.
const padding = 16

// hybrid reads numbers of up to 32 bits in Parquet's RLE encoding, a mix of two kinds of runs:
//
//	uvarint n<<1      value, in as few whole bytes as it needs    the value, n times
//	uvarint n<<1|1    n*width bytes                               8*n values of width bits, the lowest bits first
type hybrid struct {
	data  []byte // the array has padding after it
	width uint

	run    int    // rest of a run of one value
	value  uint32 // of this run
	packed int    // rest of a packed run
	bit    int    // next bit in data, of a packed run
}

func newHybrid(data []byte, width uint) (hybrid, error) {
	if width > 32 {
		return hybrid{}, damaged("numbers of %d bits", width)
	}
	return hybrid{data: data, width: width}, nil
}

// more begins the next run.
func (h *hybrid) more() error {
	if h.bit > 0 {
		h.data, h.bit = h.data[(h.bit+7)/8:], 0
	}
	head, n := binary.Uvarint(h.data)
	if n <= 0 || head>>1 == 0 || head>>1 > 1<<31 {
		return damaged("a run of numbers is missing or has no length")
	}
	h.data = h.data[n:]
	if head&1 == 0 {
		size := int(h.width+7) / 8
		if size > len(h.data) {
			return damaged("a run of numbers ends too early")
		}
		h.run, h.value = int(head>>1), 0
		for i := range size {
			h.value |= uint32(h.data[i]) << (8 * i)
		}
		h.data = h.data[size:]
		return nil
	}
	// The last run may have less data than it says: writers leave out the padding.
	h.packed = 8 * int(head>>1)
	if h.width > 0 {
		h.packed = min(h.packed, len(h.data)*8/int(h.width))
	}
	if h.packed == 0 {
		return damaged("a run of numbers has no data")
	}
	return nil
}

// same returns how many of the next n numbers are known to be v without a look at each.
func (h *hybrid) same(v uint32, n int) (int, error) {
	if h.run == 0 && h.packed == 0 {
		if err := h.more(); err != nil {
			return 0, err
		}
	}
	if h.value != v {
		return 0, nil
	}
	n = min(n, h.run)
	h.run -= n
	return n, nil
}

// read fills dst.
func (h *hybrid) read(dst []uint32) error {
	for len(dst) > 0 {
		n := 0
		switch {
		case h.run > 0:
			n = min(h.run, len(dst))
			for i := range dst[:n] {
				dst[i] = h.value
			}
			h.run -= n
		case h.packed > 0:
			n = min(h.packed, len(dst))
			h.unpack(dst[:n])
		default:
			if err := h.more(); err != nil {
				return err
			}
		}
		dst = dst[n:]
	}
	return nil
}

func (h *hybrid) unpack(dst []uint32) {
	data, mask, bit := h.data[:len(h.data)+8], uint64(1)<<h.width-1, h.bit // 8 bytes of padding
	for i := range dst {
		dst[i] = uint32(binary.LittleEndian.Uint64(data[bit>>3:]) >> (bit & 7) & mask)
		bit += int(h.width)
	}
	h.bit, h.packed = bit, h.packed-len(dst)
}
