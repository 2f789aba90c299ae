package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

const (
	realm     = "QUERN.TEST"
	superuser = "nn/localhost" // of the secured HDFS: the NameNode's own principal
	dataNode  = "dn"           // a host in the principal makes Hadoop bind a socket that BindingSocketFactory has bound
)

// kdc is MIT's Kerberos server on loopback. All files are in its directory.
type kdc struct {
	dir string
	env []string // for its programs and their clients
	cmd *exec.Cmd
}

// startKDC starts a Kerberos server with the principals of a secured HDFS, and more services. Users get a
// keytab each.
func startKDC(ctx context.Context, dir string, services, users []string) (*kdc, error) {
	for _, name := range []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%w: %s is not installed (krb5-kdc, krb5-admin-server, krb5-user)", minicluster.ErrUnavailable, name)
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	k := &kdc{dir: dir}
	k.env = []string{"KRB5_CONFIG=" + k.conf(), "KRB5_KDC_PROFILE=" + filepath.Join(dir, "kdc.conf"), "KRB5_CLIENT_KTNAME=" + k.keytab(), "KRB5CCNAME=" + k.cache()}
	conf := fmt.Sprintf(`[libdefaults]
default_realm = %[1]s
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
permitted_enctypes = aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96
default_tkt_enctypes = aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96
default_tgs_enctypes = aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96
[realms]
%[1]s = {
 kdc = 127.0.0.1:%[2]d
}
`, realm, port)
	own := fmt.Sprintf(`[kdcdefaults]
kdc_listen = 127.0.0.1:%[2]d
kdc_tcp_listen = 127.0.0.1:%[2]d
[realms]
%[1]s = {
 database_name = %[3]s/principals
 key_stash_file = %[3]s/stash
 supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
}
`, realm, port, dir)
	for file, text := range map[string]string{k.conf(): conf, filepath.Join(dir, "kdc.conf"): own} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			return nil, err
		}
	}
	steps := [][]string{{"kdb5_util", "create", "-s", "-r", realm, "-P", "x"}}
	services = append([]string{superuser, dataNode, "HTTP/localhost"}, services...)
	for _, principal := range slices.Concat(services, users) {
		steps = append(steps, []string{"kadmin.local", "-r", realm, "addprinc", "-randkey", principal})
	}
	steps = append(steps, append([]string{"kadmin.local", "-r", realm, "ktadd", "-k", k.keytab()}, services...))
	for _, user := range users {
		steps = append(steps, []string{"kadmin.local", "-r", realm, "ktadd", "-k", k.keytabOf(user), user})
	}
	for _, step := range steps {
		if err := k.run(ctx, step...); err != nil {
			return nil, err
		}
	}
	k.cmd = exec.CommandContext(ctx, "krb5kdc", "-n", "-r", realm)
	k.cmd.Env = append(os.Environ(), k.env...)
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *kdc) conf() string   { return filepath.Join(k.dir, "krb5.conf") }
func (k *kdc) keytab() string { return filepath.Join(k.dir, "keytab") }
func (k *kdc) cache() string  { return filepath.Join(k.dir, "cache") }

func (k *kdc) keytabOf(user string) string { return filepath.Join(k.dir, "keytab-"+user) }

// inKerberos starts a Kerberos server and calls do with its environment and the superuser's login.
func inKerberos(ctx context.Context, dir string, services, users []string, do func(*kdc) error) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	k, err := startKDC(ctx, dir, services, users)
	if err != nil {
		return err
	}
	defer k.close()
	if err := k.login(ctx); err != nil {
		return err
	}
	for _, pair := range k.env { // of the daemons, of Hadoop's client and of Quern
		name, value, _ := strings.Cut(pair, "=")
		defer os.Setenv(name, os.Getenv(name))
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return do(k)
}

// withTokens calls do in an environment with a token file and without a login.
func (k *kdc) withTokens(file string, do func() error) error {
	set := func(keytab, cache string) error {
		return errors.Join(os.Setenv("KRB5_CLIENT_KTNAME", keytab), os.Setenv("KRB5CCNAME", cache))
	}
	return errors.Join(set("", k.cache()+"-none"), os.Setenv(tokenFile, file), do(), os.Unsetenv(tokenFile), set(k.keytab(), k.cache()))
}

// run runs one of Kerberos's programs.
func (k *kdc) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), k.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// login fills the credential cache. The server may still be starting.
func (k *kdc) login(ctx context.Context) (err error) {
	for range 50 {
		if err = k.run(ctx, "kinit", "-k", "-t", k.keytab(), "-c", k.cache(), superuser); err == nil {
			return nil
		}
	}
	return err
}

func (k *kdc) close() {
	k.cmd.Process.Kill()
	k.cmd.Wait()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
