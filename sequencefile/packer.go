package sequencefile

import (
	"bytes"

	"github.com/quernmr/quern/compression"
)

// packer compresses contents, each to a stream of its own.
type packer struct {
	codec *compression.Codec
	w     *compression.Writer
	out   bytes.Buffer
}

// pack returns the compressed content. It is valid until the next call.
func (p *packer) pack(content []byte) ([]byte, error) {
	p.out.Reset()
	var err error
	if p.w == nil {
		p.w, err = p.codec.NewWriter(&p.out)
	} else {
		err = p.w.Reset(&p.out)
	}
	if err != nil {
		return nil, err
	}
	if _, err := p.w.Write(content); err != nil {
		return nil, err
	}
	if err := p.w.Close(); err != nil {
		return nil, err
	}
	return p.out.Bytes(), nil
}
