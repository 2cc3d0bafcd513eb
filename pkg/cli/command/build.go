package command

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Version, Revision and Date say what was built. The linker sets them (-X …/pkg/cli/command.Version=v1.2.3); an empty
// one is taken from what the Go toolchain recorded about module and checkout. Date is that of the commit, in RFC 3339:
// a date of the build would make two builds of one commit differ.
var (
	Version  string
	Revision string
	Date     string
)

// unknown is printed for what was not recorded.
const unknown = "unknown"

// BuildInfo is what is known of a binary.
type BuildInfo struct{ Version, Revision, Date, Go string }

// Build gathers what is known of this binary.
func Build() BuildInfo {
	b := BuildInfo{Version: Version, Revision: Revision, Date: Date, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.fill(info)
	}
	b.Version, b.Revision, b.Date = cmp.Or(b.Version, unknown), cmp.Or(b.Revision, unknown), cmp.Or(b.Date, unknown)
	return b
}

// fill takes from the toolchain's record what the linker did not set.
func (b *BuildInfo) fill(info *debug.BuildInfo) {
	modified := false
	revision, date := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.time":
			date = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	b.Version, b.Date = cmp.Or(b.Version, info.Main.Version), cmp.Or(b.Date, date)
	if b.Revision == "" && revision != "" {
		b.Revision = revision
		if modified {
			b.Revision += "-dirty"
		}
	}
}
