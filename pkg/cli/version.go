package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version and Revision say what was built. The linker sets them (-X …/pkg/cli.Version=v1.2.3); empty, what the Go
// toolchain recorded of module and checkout is taken.
var (
	Version  string
	Revision string
)

// unknown stands for what was recorded nowhere.
const unknown = "unknown"

type buildInfo struct{ Version, Revision, Go string }

// build gathers what is known of this binary.
func build() buildInfo {
	b := buildInfo{Version: Version, Revision: Revision, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.fill(info)
	}
	if b.Version == "" {
		b.Version = unknown
	}
	if b.Revision == "" {
		b.Revision = unknown
	}
	return b
}

// fill takes from the toolchain's record what the linker did not set.
func (b *buildInfo) fill(info *debug.BuildInfo) {
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	modified := false
	revision := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if b.Revision == "" && revision != "" {
		b.Revision = revision
		if modified {
			b.Revision += "-dirty"
		}
	}
}

func newVersion(streams IO) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, revision and Go version",
		Example: `  corollary version`,
		Args:    noArguments("version takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			b := build()
			_, err := fmt.Fprintf(streams.Out, "Version:  %s\nRevision: %s\nGo:       %s\n", b.Version, b.Revision, b.Go)
			if err != nil {
				return fmt.Errorf("writing the version: %w", err)
			}
			return nil
		},
	}
}
