package facts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// A job's token lets trackers fetch its map outputs from each other, and its owner
// read its logs. It is made of the submission's secret, which is in the log: so
// every leader knows it, and nobody learns it from another job's.

// Token is that of a job. Submissions from before there were secrets have the
// cluster's, which trackers know; where there is none either, there is no token.
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

// Who is the owner of a submission; of one without a secret only as long as its jobs
// have not ended.
func (s *Submission) Who() string {
	if s.owner == "" && s.body != nil {
		return s.body.Owner
	}
	return s.owner
}
