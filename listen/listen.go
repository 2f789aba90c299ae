// Package listen protects the ports of daemons from unknown peers, before and beside TLS (package
// identity).
//
// # Connections
//
// [Limit] bounds the open connections of one address, so that one machine cannot use up a daemon's
// files and memory. A connection of a peer that stays unknown for some time is closed. If an address has
// too many, a new connection replaces the oldest one that is unknown. So a machine that holds
// connections does not keep out clients of the same machine, which are known soon.
//
//	with TLS          known after the handshake, see package identity
//	HTTP without TLS  known after the header of a request, see [Server]
//	raft without TLS  known after the first request, or a long part of it
//	gossip            never known: each connection has one message, and ends soon
//
// A byte does not make a peer known: any user of a machine can send one, and then wait.
//
// # Names
//
// [Names] refuses HTTP requests for another host. A web page can make a browser connect to any
// address, by a name of its own that resolves to it (DNS rebinding), and then read the answers. Its
// requests have that name in the header Host. An IP address in Host is always accepted: a page that
// comes from an address cannot be rebound to another one.
//
// # Errors
//
// [Fail] answers requests with errors: problems of RFC 9457, and text for browsers.
//
// All goroutines may use the types of this package.
package listen
