package run

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/corollary-dev/corollary/internal/must"
)

// asLogging is the variable that makes the test binary log and end: controller-runtime keeps the first logger that a
// process gives it, which may be that of another test.
const asLogging = "TEST_AS_LOGGING"

func TestMain(m *testing.M) {
	if os.Getenv(asLogging) == "" {
		os.Exit(m.Run())
	}
	logger := newLogger(zap.Options{}, os.Stderr)
	SetLoggers(logger)
	logger.Info("from us")
	log.Log.Info("from controller-runtime")
	klog.InfoS("from client-go")
	klog.ErrorS(errors.New("broken"), "an error from client-go")
}

// TestOneLogger: what controller-runtime and client-go log goes where the command's own lines go, in the same form.
func TestOneLogger(t *testing.T) {
	t.Parallel()
	self := must.Get(os.Executable()).In(t)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), asLogging+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), out)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not of the one logger: %s", line)
		}
	}
}

// TestErrorsAreLoggedWithoutStack: a stack trace comes where it is asked for, not with every error of the cluster's.
func TestErrorsAreLoggedWithoutStack(t *testing.T) {
	for _, test := range []struct {
		args   []string
		want   bool
		reason string
	}{
		{nil, false, "the default"},
		{[]string{"--zap-devel"}, false, "for a person at a terminal even less"},
		{[]string{"--zap-stacktrace-level=error"}, true, "asked for"},
	} {
		var o zap.Options
		cmd := &cobra.Command{}
		bindLogging(cmd, &o)
		must.Do(t, cmd.ParseFlags(test.args))
		var out strings.Builder
		newLogger(o, &out).Error(errors.New("broken"), "an error")
		if got := strings.Contains(out.String(), "logging_test.go:"); got != test.want {
			t.Errorf("%s: a stack trace is %t, want %t:\n%s", test.reason, got, test.want, out.String())
		}
	}
}
