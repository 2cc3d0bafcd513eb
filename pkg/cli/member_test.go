package cli_test

import (
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// member is one of several processes in an election. Everything it does, it does as a user of its own, by which the API
// server's audit log distinguishes it from the others.
type member struct {
	*process
	user string
}

// startMember starts a process that campaigns in the namespace, and works for it.
func startMember(t *testing.T, cfg *rest.Config, ns, name string, args ...string) *member {
	t.Helper()
	user := name + "-of-" + ns
	args = append([]string{"--as", user, "--as-group", "system:masters", "-n", ns, "--leader-elect", "--leader-election-id", "widgets-leader"},
		args...)
	return &member{process: startRun(t, cfg, ns, args...), user: user}
}

func (m *member) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	ok(t, m.Process.Signal(s))
}

// wrote lists what the member wrote that the API server began with after a moment, the Lease aside.
func (m *member) wrote(t *testing.T, after time.Time) []testkit.Request {
	t.Helper()
	return testkit.Audit(t, testkit.By(m.user), testkit.Request.Mutating, func(r testkit.Request) bool {
		return r.Resource != "leases" && r.Received.After(after)
	})
}

func eventuallyLeads(t *testing.T, m *member) {
	t.Helper()
	eventuallySays(t, m.process, `"msg":"Successfully acquired lease"`)
}
