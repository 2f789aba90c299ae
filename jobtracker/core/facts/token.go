package facts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// A job's token lets trackers fetch its map outputs from each other, and its owner read its
// logs. It is derived from the submission's secret, which is in the log. So every leader
// knows it, and one job's token does not reveal another's.

// Token returns a job's token. For submissions without a secret it uses the cluster's nonce,
// which trackers know. Without a nonce, there is no token.
func (f *Facts) Token(j *Job) string {
	secret := j.sub.secret
	if len(secret) == 0 {
		secret = []byte(f.boot.Nonce)
	}
	if len(secret) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(f.ID(j.n).String()))
	return hex.EncodeToString(mac.Sum(nil))
}

// Owner is the submission's owner. Without a secret, it is known only until all its jobs have
// ended.
func (s *Submission) Owner() string {
	if s.owner == "" && s.body != nil {
		return s.body.Owner
	}
	return s.owner
}
