package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// TestOneLogger: what controller-runtime and client-go log goes where the command's own lines go, in the same form.
func TestOneLogger(t *testing.T) {
	var out strings.Builder
	logger := startLogging(zap.Options{}, &out)
	logger.Info("from us")
	log.Log.Info("from controller-runtime")
	klog.InfoS("from client-go")
	klog.ErrorS(errors.New("broken"), "an error from client-go")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), out.String())
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
		if err := cmd.ParseFlags(test.args); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		startLogging(o, &out).Error(errors.New("broken"), "an error")
		if got := strings.Contains(out.String(), "logging_test.go:"); got != test.want {
			t.Errorf("%s: a stack trace is %t, want %t:\n%s", test.reason, got, test.want, out.String())
		}
	}
}
