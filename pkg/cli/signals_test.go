package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// asHanging is the variable that makes the test binary wait for a signal and then hang, as a stop that takes long.
const asHanging = "TEST_AS_HANGING"

// runAsHanging is started by TestSecondSignalEndsAtOnce. TestMain calls it first.
func runAsHanging() {
	if os.Getenv(asHanging) == "" {
		return
	}
	ctx, stop := command.UntilSignal(context.Background())
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("stopping")
	select {}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			self := must(os.Executable())(t)
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), asHanging+"=1", quickEnd())
			out := must(cmd.StdoutPipe())(t)
			ok(t, cmd.Start())
			lines := bufio.NewScanner(out)
			for _, want := range []string{"ready", "stopping"} {
				if !lines.Scan() || lines.Text() != want {
					t.Fatalf("it said %q, want %q", lines.Text(), want)
				}
				ok(t, cmd.Process.Signal(sig))
			}
			killed := time.AfterFunc(testkit.Patient(patience), func() { _ = cmd.Process.Kill() })
			defer killed.Stop()
			_ = cmd.Wait() // how it ended is looked at below
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("it ended with %v, want exit code 1", cmd.ProcessState)
			}
		})
	}
}
