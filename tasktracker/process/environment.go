package process

import (
	"slices"
	"strings"
)

// Variables of the tracker that workers get on a cluster. Others may be secrets of the daemon or of
// the operator who started it. Tests compare the list with docs/reference.md.
var passedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR",
	"LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"JAVA_HOME", "HADOOP_HOME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "HADOOP_TOKEN_FILE_LOCATION",
	"KRB5_CONFIG", "KRB5CCNAME", "KRB5_CLIENT_KTNAME", "KRB5_CLIENT_PRINCIPAL",
	"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOTRACEBACK",
}

// PassedVariables lists the names, or beginnings of names with a *, of the variables that workers of
// a cluster always get.
func PassedVariables() []string { return slices.Clone(passedVariables) }

// workerEnvironment returns the environment of a worker, see the package comment.
func (cfg *Config) workerEnvironment(trackerEnv []string) []string {
	env := make([]string, 0, len(trackerEnv)+1)
	for _, v := range trackerEnv {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "QUERN_") && (!cfg.Contain || cfg.passes(name)) {
			env = append(env, v)
		}
	}
	return append(env, workerMode)
}

// passes reports whether a variable of the tracker is passed on.
func (cfg *Config) passes(name string) bool {
	matches := func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return name == pattern || isPrefix && strings.HasPrefix(name, prefix)
	}
	return slices.ContainsFunc(passedVariables, matches) || slices.ContainsFunc(cfg.Variables, matches)
}
