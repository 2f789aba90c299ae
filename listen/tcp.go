package listen

import "io"

// net/http looks for these methods of a *net.TCPConn.

// ReadFrom implements io.ReaderFrom, so that files are sent with sendfile.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if to, ok := c.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// CloseWrite ends the sending direction.
func (c *conn) CloseWrite() error {
	if to, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return to.CloseWrite()
	}
	return nil
}
