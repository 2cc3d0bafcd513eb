package run

import (
	"flag"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	uberzap "go.uber.org/zap"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/corollary-dev/corollary/pkg/logging"
)

// bindLogging adds the --zap-… flags as every program on controller-runtime has them, but for the stack traces: an
// error that is logged is nearly always the cluster's or the config's, and twelve lines of source files hide what it
// says.
func bindLogging(cmd *cobra.Command, o *zap.Options) {
	flags := flag.NewFlagSet("zap", flag.ContinueOnError)
	o.BindFlags(flags)
	_ = flags.Set(stacktraceFlag, "panic")
	level := flags.Lookup("zap-log-level")
	level.Value = levelFlag{level.Value, o}
	for name, says := range map[string][2]string{
		"zap-devel":   {"false", "For people at a terminal: the console encoder, at level debug"},
		"zap-encoder": {"json", "Form of the log: json or console"},
		"zap-log-level": {"info",
			"Least level that is logged: debug, info, warn, error, panic, or a number above 0 for more than debug, at most 7"},
		stacktraceFlag:      {"panic", "Least level that is logged with a stack trace: info, error or panic"},
		"zap-time-encoding": {"rfc3339", "Form of the times: epoch, millis, nano, iso8601, rfc3339 or rfc3339nano"},
	} {
		f := flags.Lookup(name)
		f.DefValue, f.Usage = says[0], says[1]
	}
	cmd.Flags().AddGoFlagSet(flags)
	for name, words := range map[string][]cobra.Completion{
		"zap-encoder":       {"json", "console"},
		"zap-log-level":     {"debug", "info", "warn", "error", "panic"},
		stacktraceFlag:      {"info", "error", "panic"},
		"zap-time-encoding": {"epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// levelFlag adds the level warn, which controller-runtime does not know.
type levelFlag struct {
	flag.Value
	options *zap.Options
}

// Set implements flag.Value.
func (l levelFlag) Set(text string) error {
	if text != uberzap.WarnLevel.String() {
		return l.Value.Set(text)
	}
	level := uberzap.NewAtomicLevelAt(uberzap.WarnLevel)
	l.options.Level = &level
	return nil
}

const stacktraceFlag = "zap-stacktrace-level"

// maxLogLevel is the most that is logged: beyond it client-go writes the bodies of its requests into the log, and with
// them Secrets.
const maxLogLevel = 7

// newLogger returns the logger that the flags ask for.
func newLogger(o zap.Options, w io.Writer) logr.Logger {
	if o.Level != nil && o.Level.Enabled(-maxLogLevel-1) {
		level := uberzap.NewAtomicLevelAt(-maxLogLevel)
		o.Level = &level
	}
	o.DestWriter = w
	return zap.New(zap.UseFlagOptions(&o))
}

// SetLoggers makes a logger that of controller-runtime and, by klog, of client-go. Nothing may use either meanwhile:
// klog keeps its logger without a lock.
func SetLoggers(logger logr.Logger) {
	log.SetLogger(logger)
	klog.SetLoggerWithOptions(logging.ForClients(logger), klog.ContextualLogger(true))
}
