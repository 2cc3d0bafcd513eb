package logging

import (
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Warn logs what a person must look at, if neither the program nor a config is at fault. logr has no such level; a
// logger that is not zap's logs it as Info does.
func Warn(log logr.Logger, message string, keysAndValues ...any) {
	if sink, ok := log.GetSink().(zapr.Underlier); ok {
		log = zapr.NewLogger(sink.GetUnderlying().WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return warnings{core}
		})))
	}
	log.Info(message, keysAndValues...)
}

// warnings logs each entry as a warning.
type warnings struct{ zapcore.Core }

// Enabled implements zapcore.Core.
func (w warnings) Enabled(zapcore.Level) bool { return w.Core.Enabled(zapcore.WarnLevel) }

// With implements zapcore.Core.
func (w warnings) With(fields []zapcore.Field) zapcore.Core { return warnings{w.Core.With(fields)} }

// Check implements zapcore.Core.
func (w warnings) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	e.Level = zapcore.WarnLevel
	return w.Core.Check(e, checked)
}

// ForManager returns a logger for a manager of controller-runtime, which records events with a logger named events.
func ForManager(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(managerSink{log.GetSink()})
}

type managerSink struct{ logr.LogSink }

// WithValues implements logr.LogSink.
func (s managerSink) WithValues(keysAndValues ...any) logr.LogSink {
	return managerSink{s.LogSink.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (s managerSink) WithName(name string) logr.LogSink {
	named := s.LogSink.WithName(name)
	if name == "events" {
		return clientSink{named}
	}
	return managerSink{named}
}

// ForClients returns a logger for client libraries. What they call an error is a request that failed, which they
// repeat, or an event that the API server refuses, as in a namespace that is being deleted: neither is a fault of the
// program. A panic is one.
func ForClients(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(clientSink{log.GetSink()})
}

type clientSink struct{ logr.LogSink }

// Error implements logr.LogSink.
func (s clientSink) Error(err error, message string, keysAndValues ...any) {
	log := logr.New(s.LogSink)
	if err != nil {
		keysAndValues = append(keysAndValues[:len(keysAndValues):len(keysAndValues)], "error", err.Error())
	}
	switch {
	case strings.Contains(message, "panic"):
		log.Error(err, message, keysAndValues...)
	case strings.Contains(message, "event"):
		log.Info(message, keysAndValues...)
	default:
		Warn(log, message, keysAndValues...)
	}
}

// WithValues implements logr.LogSink.
func (s clientSink) WithValues(keysAndValues ...any) logr.LogSink {
	return clientSink{s.LogSink.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (s clientSink) WithName(name string) logr.LogSink { return clientSink{s.LogSink.WithName(name)} }
