package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

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
