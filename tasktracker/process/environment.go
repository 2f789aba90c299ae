package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/tasktracker/credentials"
)

// Variables of the tracker that workers get on a cluster. Others may be secrets of the daemon or of
// the operator who started it. Tests compare the list with docs/reference.md.
var passedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR",
	"LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"JAVA_HOME", "HADOOP_HOME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "KRB5_CONFIG",
	"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOTRACEBACK",
}

// hdfsUser names the user in HDFS without Kerberos.
const hdfsUser = "HADOOP_USER_NAME"

// Variables that no worker of a cluster gets: they name the tracker's keys.
var withheldVariables = []string{"KRB5_CLIENT_KTNAME", "KRB5_CLIENT_PRINCIPAL", "KRB5_KTNAME", "HADOOP_TOKEN_FILE_LOCATION"}

// Withheld reports whether workers of a cluster never get a variable of the tracker.
func Withheld(name string) bool {
	return strings.HasPrefix(name, "QUERN_") || slices.Contains(withheldVariables, name)
}

// PassedVariables lists the names, or beginnings of names with a *, of the variables that workers of
// a cluster always get.
func PassedVariables() []string { return slices.Clone(passedVariables) }

// workerEnvironment returns the environment of a worker, see the package comment.
func (cfg *Config) workerEnvironment(trackerEnv []string, owner, dir string) []string {
	env := make([]string, 0, len(trackerEnv)+3)
	for _, v := range trackerEnv {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "QUERN_") && (!cfg.Contain || !Withheld(name) && cfg.passes(name)) {
			env = append(env, v)
		}
	}
	if cfg.AsOwner {
		env = append(env, hdfsUser+"="+owner) // the last one counts
	}
	if tokens := filepath.Join(dir, credentials.File); exists(tokens) {
		env = append(env, credentials.Variable+"="+tokens)
	}
	return append(env, workerMode)
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// passes reports whether a variable of the tracker is passed on.
func (cfg *Config) passes(name string) bool {
	matches := func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return name == pattern || isPrefix && strings.HasPrefix(name, prefix)
	}
	return slices.ContainsFunc(passedVariables, matches) || slices.ContainsFunc(cfg.Variables, matches)
}
