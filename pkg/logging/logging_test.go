package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/corollary-dev/corollary/pkg/logging"
)

// TestLevels: each line has its level, the message, and the values of its logger.
func TestLevels(t *testing.T) {
	broken := errors.New("broken")
	for _, row := range []struct {
		reason, want string
		level        zapcore.Level
		write        func(log logr.Logger)
	}{
		{"a warning", "warn", zapcore.InfoLevel, func(log logr.Logger) { logging.Warn(log, "message", "key", 1) }},
		{"a warning of a logger for details", "warn", zapcore.InfoLevel, func(log logr.Logger) { logging.Warn(log.V(1), "message", "key", 1) }},
		{"with the level error, no warning is logged", "", zapcore.ErrorLevel, func(log logr.Logger) { logging.Warn(log, "message", "key", 1) }},
		{"a request of a client failed", "warn", zapcore.InfoLevel, func(log logr.Logger) {
			logging.ForClients(log).Error(broken, "message", "key", 1)
		}},
		{"the same with a name and values", "warn", zapcore.InfoLevel, func(log logr.Logger) {
			logging.ForClients(log).WithName("client").WithValues("key", 1).Error(broken, "message")
		}},
		{"the API server refuses an event", "info", zapcore.InfoLevel, func(log logr.Logger) {
			logging.ForClients(log).Error(broken, "message: Server rejected event (will not retry!)", "key", 1)
		}},
		{"the same of a manager", "info", zapcore.InfoLevel, func(log logr.Logger) {
			logging.ForManager(log).WithValues("key", 1).WithName("events").Error(broken, "message: Server rejected event (will not retry!)")
		}},
		{"any other error of a manager", "error", zapcore.InfoLevel, func(log logr.Logger) {
			logging.ForManager(log).WithName("a").Error(broken, "message", "key", 1)
		}},
		{"a panic in a client", "error", zapcore.InfoLevel, func(log logr.Logger) {
			logging.ForClients(log).Error(broken, "message: Observed a panic", "key", 1)
		}},
		{"what a client says", "info", zapcore.InfoLevel, func(log logr.Logger) { logging.ForClients(log).Info("message", "key", 1) }},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var out bytes.Buffer
			row.write(zap.New(zap.WriteTo(&out), zap.JSONEncoder(), zap.Level(row.level)).WithValues("operator", "a"))
			var line struct {
				Level, Msg, Operator, Error string
				Key                         int
			}
			if row.want == "" && out.Len() == 0 {
				return
			}
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			if line.Level != row.want || !strings.HasPrefix(line.Msg, "message") || line.Operator != "a" || line.Key != 1 {
				t.Errorf("want level %q: %s", row.want, out.String())
			}
		})
	}
}

// TestWarnOfOthers: a logger without levels gets the line, too; one that discards everything gets nothing.
func TestWarnOfOthers(t *testing.T) {
	var lines []string
	logging.Warn(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}), "message")
	logging.Warn(logr.Discard(), "message")
	logging.ForClients(logr.Discard()).Error(errors.New("broken"), "message")
	if len(lines) != 1 || !strings.Contains(lines[0], "message") {
		t.Errorf("%q", lines)
	}
}
