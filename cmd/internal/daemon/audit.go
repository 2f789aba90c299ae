package daemon

import (
	"fmt"
	"log/slog"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/identity"
)

// Audit opens the file of -audit-log, which the caller closes, for events and for refused peers of self. Without the flag,
// record is nil.
func (s Security) Audit(self *identity.Identity, log *slog.Logger) (record func(audit.Event), close func(), err error) {
	if s.AuditLog == "" {
		return nil, func() {}, nil
	}
	l, err := audit.Open(s.AuditLog, log)
	if err != nil {
		return nil, nil, Usagef("-audit-log: %v", err)
	}
	self.OnRefusal(func(r identity.Refusal) { l.Record(refusal(r)) })
	return l.Record, l.Close, nil
}

// refusal is the event of a peer that was not admitted. Its name is a detail: it has not shown yet that its certificate is its own.
func refusal(r identity.Refusal) audit.Event {
	e := audit.Event{Who: "unidentified", From: r.From, Action: "connect", Detail: r.Certificate, Outcome: audit.Refused, Reason: r.Reason.Error()}
	if r.Connected {
		e.Action = "stay connected"
	}
	if r.Suppressed > 0 {
		e.Detail += fmt.Sprintf(" (and %d more since the last one)", r.Suppressed)
	}
	return e
}
