package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// LogToken returns the token with which a user may read the logs of the job that has this token. It
// is useless for map outputs and for other users. Without certificates, the user is empty. It is
// empty if the job has no token.
func LogToken(jobToken, user string) string {
	if jobToken == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(jobToken))
	mac.Write([]byte("logs for " + user))
	return hex.EncodeToString(mac.Sum(nil))
}
