package command

import (
	"errors"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/config/load"
)

// variablePrefix begins the environment variables that are process settings: COROLLARY_ and the flag's name in
// capitals, with _ for -, so --zap-log-level is COROLLARY_ZAP_LOG_LEVEL.
const variablePrefix = "COROLLARY_"

// serviceAddress matches the value of COROLLARY_PORT and similar variables, which Kubernetes injects for a Service
// called corollary. No setting has such a value.
var serviceAddress = regexp.MustCompile(`^(tcp|udp|sctp)://`)

// FromEnvironment sets each flag that the command line does not give from its variable. It returns, sorted, the
// variables with our prefix that set nothing, which are probably misspelt.
func FromEnvironment(flags *pflag.FlagSet, env []string) (unknown []string, err error) {
	values := map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || strings.HasPrefix(name, load.EnvPrefix) ||
			load.ServiceLink.MatchString(name) || serviceAddress.MatchString(value) {
			continue
		}
		values[name] = value
	}
	flags.VisitAll(func(f *pflag.Flag) {
		name := variableOf(f)
		value, ok := values[name]
		if name == "" || !ok {
			return
		}
		delete(values, name)
		if f.Changed || value == "" || err != nil {
			return
		}
		if e := set(flags, f.Name, value); e != nil {
			err = Usagef("environment %s: %s", name, settingError(e))
		}
	})
	for name := range values {
		unknown = append(unknown, name)
	}
	sort.Strings(unknown)
	return unknown, err
}

// variableOf names a flag's variable; empty for the flags that have none: --help is not a setting, and the overrides of
// --set have variables of their own.
func variableOf(f *pflag.Flag) string {
	if f.Name == "help" || f.Name == "set" {
		return ""
	}
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// set gives a flag the value of a variable. Several configs are separated as in PATH and KUBECONFIG.
func set(flags *pflag.FlagSet, name, value string) error {
	values := []string{value}
	if name == "config" {
		values = filepath.SplitList(value)
	}
	for _, v := range values {
		if err := flags.Set(name, v); err != nil {
			return err
		}
	}
	return nil
}

// settingError is the error of a variable's value: the same as that of the flag's.
func settingError(err error) string {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return wrongValue(invalid)
	}
	return err.Error()
}
