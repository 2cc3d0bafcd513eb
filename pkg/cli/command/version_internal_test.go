package command

import (
	"runtime/debug"
	"testing"
)

// TestVersionOfAnInstalledModule: `go install …@v1.2.3` and a build in a clone stamp nothing; the toolchain's record
// does.
func TestVersionOfAnInstalledModule(t *testing.T) {
	recorded := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.time", Value: "2001-02-03T04:05:06Z"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	for _, test := range []struct {
		reason      string
		have, wants BuildInfo
	}{
		{"nothing is stamped", BuildInfo{}, BuildInfo{Version: "v1.2.3", Revision: "0123abcd-dirty", Date: "2001-02-03T04:05:06Z"}},
		{
			"what is stamped stays", BuildInfo{Version: "v9", Revision: "ff", Date: "2002-01-01T00:00:00Z"},
			BuildInfo{Version: "v9", Revision: "ff", Date: "2002-01-01T00:00:00Z"},
		},
	} {
		have := test.have
		have.fill(recorded)
		if have != test.wants {
			t.Errorf("%s: got %+v, want %+v", test.reason, have, test.wants)
		}
	}
}
