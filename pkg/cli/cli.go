package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/check"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/cli/convert"
	"github.com/corollary-dev/corollary/pkg/cli/crd"
	"github.com/corollary-dev/corollary/pkg/cli/generate"
	"github.com/corollary-dev/corollary/pkg/cli/inspect"
	"github.com/corollary-dev/corollary/pkg/cli/offline"
	"github.com/corollary-dev/corollary/pkg/cli/operate"
	"github.com/corollary-dev/corollary/pkg/cli/run"
	"github.com/corollary-dev/corollary/pkg/cli/stored"
)

// IO is what a command reads and writes.
type IO = command.IO

// System returns the IO of this process.
func System() command.IO {
	return command.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(),
		Program: os.Args[0], Logs: run.SetLoggers}
}

// Main runs the command that args (without the program's name) ask for and returns the exit code: 0 where all went
// well, 1 on any error, of usage too. Every error has been written to streams.Err by then.
func Main(args []string, streams command.IO) int {
	root := newRoot(streams)
	args = asPlugin(root, streams.Program, args)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	var exit *command.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	fmt.Fprintln(streams.Err, "Error: "+describeError(root, cmd, args, err))
	return 1
}

func newRoot(streams command.IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "corollary",
		Short: "Run Kubernetes operators defined in YAML",
		Long: `Corollary is an operator without code for each kind: a config file names what to
watch, what makes it valid, and the objects that follow from it as templates.
Corollary keeps the cluster that way.`,
		Version: command.Build().Version,
		Example: `  # Start from an existing manifest
  corollary init --kind WebApp.v1.platform.example.com --from deploy.yaml

  # Check it and run its test cases, without a cluster
  corollary check -c operator.yaml --crds crd.yaml
  corollary test cases

  # See what it would do in a cluster, then run it
  corollary plan -c operator.yaml
  corollary run -c operator.yaml`,
		SilenceUsage:       true,
		SilenceErrors:      true,
		DisableSuggestions: true, // describeError makes better ones
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out) // before the completion command is made, which keeps it
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(command.FlagError)
	root.SetUsageFunc(usage)
	root.SetVersionTemplate("{{ .Version }}\n")
	root.AddCommand(offline.Commands(streams)...)
	root.AddCommand(inspect.Commands(streams)...)
	root.AddCommand(operate.Commands(streams)...)
	root.AddCommand(stored.Commands(streams)...)
	root.AddCommand(check.New(streams), convert.New(streams), crd.New(streams), generate.New(streams),
		run.New(streams), run.NewDev(streams), newSchema(streams),
		newVersion(streams))
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	nameShell(root)
	return root
}

// describeError is what is printed of an error: one line, and for a wrong use how to find the right one.
func describeError(root, cmd *cobra.Command, args []string, err error) string {
	var usage *command.UsageError
	switch {
	case errors.As(err, &usage):
		return fmt.Sprintf("%s (see %s --help)", usage.Problem, cmd.CommandPath())
	case cmd == root:
		// The root has nothing to run and its flags are checked above: what is left is a command that does not exist.
		return command.UnknownCommand(root, args)
	}
	return err.Error()
}
