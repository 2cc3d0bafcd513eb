package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// helpWidth is where the text of flags is wrapped.
const helpWidth = 120

// commandGroups order the commands in help as they are used, one after the other. What none of them names comes last.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"Configs, without a cluster:", []string{"init", "check", "render", "test", "dev", "graph", "generate", "schema"}},
	{"In a cluster:", []string{"plan", "run", "get", "why", "reconcile", "confirm", "activation",
		"release", "backup", "restore"}},
	{"Versions of a kind:", []string{"convert", "migrate", "crd"}},
}

// usage prints what follows the description of a command in its help.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	usageOfCommands(&b, cmd)
	own, connection := splitFlags(cmd)
	flags := func(title string, set *pflag.FlagSet) {
		if set.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s\n%s", title, set.FlagUsagesWrapped(helpWidth))
		}
	}
	flags("Flags:", own)
	flags("The API server, as for kubectl:", connection)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), b.String())
	return err
}

// usageOfCommands lists the commands below one, by group where they are the root's.
func usageOfCommands(b *strings.Builder, cmd *cobra.Command) {
	left := map[string]*cobra.Command{}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			left[c.Name()] = c
		}
	}
	line := func(c *cobra.Command) {
		fmt.Fprintf(b, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
		delete(left, c.Name())
	}
	rest := "Available Commands:"
	if !cmd.HasParent() {
		for _, g := range commandGroups {
			fmt.Fprintf(b, "\n%s\n", g.title)
			for _, name := range g.commands {
				line(left[name])
			}
		}
		rest = "Besides:"
	}
	if len(left) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", rest)
	for _, c := range cmd.Commands() {
		if left[c.Name()] != nil {
			line(c)
		}
	}
}

// splitFlags parts the flags that every command with an API server has from those that are a command's own.
func splitFlags(cmd *cobra.Command) (own, connection *pflag.FlagSet) {
	own, connection = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[command.ConnectionFlag] != nil {
			connection.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	return own, connection
}
