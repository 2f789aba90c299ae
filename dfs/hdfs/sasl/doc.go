// Package sasl is the client's side of HDFS's authentication: what is chosen, computed and
// sealed. Package hdfs has the messages and connections that carry it.
//
// # Mechanisms
//
// DataNodes use DIGEST-MD5 (RFC 2831), with a block's token or the cluster's encryption key as
// user and password: [Digest]. NameNodes use GSSAPI (RFC 4752) with Kerberos (RFC 4121): [GSS].
//
// # Levels
//
// Both protect the connection at a [Level]. The client chooses it: [Demand.Choose] never goes
// below the configuration, whatever the server offers. The server confirms the choice in a
// signed message of both mechanisms.
//
// # Frames
//
// A frame of DIGEST-MD5 is
//
//	4 bytes   length of what follows
//	          the message; encrypted at [Privacy]
//	10 bytes  beginning of its HMAC-MD5; encrypted at [Privacy]
//	2 bytes   00 01
//	4 bytes   number of the frame
//
// The frame's number is part of the HMAC, so frames cannot be repeated, dropped or reordered. A
// token of GSSAPI has a number too.
//
// With AES, the frames carry only the two keys. After that, the connection is a stream in
// counter mode, without HMAC: HDFS relies on the checksums of its packets there.
package sasl
