// Package listen protects the ports of daemons from unknown peers, before and beside TLS (package
// identity).
//
// # Connections
//
// [Limit] bounds the open connections of one address, so that one machine cannot use up a daemon's
// files and memory. A connection that receives no byte for some time is closed. If an address has
// too many, a new connection replaces the oldest one that is still silent. So a machine that holds
// silent connections does not keep out clients of the same machine, which send a byte at once. With TLS,
// a connection is silent until the end of its handshake: any user of a machine can send a byte.
//
// # Names
//
// [Names] refuses HTTP requests for another host. A web page can make a browser connect to any
// address, by a name of its own that resolves to it (DNS rebinding), and then read the answers. Its
// requests have that name in the header Host. An IP address in Host is always accepted: a page that
// comes from an address cannot be rebound to another one.
//
// All goroutines may use the types of this package.
package listen
