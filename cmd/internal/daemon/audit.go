package daemon

import (
	"log/slog"

	"github.com/quernmr/quern/audit"
)

// Audit opens the file of -audit-log, which the caller closes. Without the flag, record is nil.
func (s Security) Audit(log *slog.Logger) (record func(audit.Event), close func(), err error) {
	if s.AuditLog == "" {
		return nil, func() {}, nil
	}
	l, err := audit.Open(s.AuditLog, log)
	if err != nil {
		return nil, nil, Usagef("-audit-log: %v", err)
	}
	return l.Record, l.Close, nil
}
