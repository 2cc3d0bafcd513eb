//go:build controlplane

package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/must"
)

// helperEnv makes the test binary a program that starts control planes concurrently, prints their addresses, and waits
// to be killed.
const helperEnv = "TEST_START_AND_WAIT"

// planes is the number of control planes that it starts.
const planes = 2

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	for range planes {
		go func() {
			c, err := Start(context.Background(), Options{})
			if err != nil {
				panic(err)
			}
			fmt.Println(c.dir, c.admin.Host) // to stdout: the output of the components may go to stderr
		}()
	}
	select {}
}

func TestManagerThatEnds(t *testing.T) {
	c := must.Get(Start(t.Context(), Options{Controllers: []string{"no-such-controller"}})).In(t)
	select {
	case <-c.managers[0].exited:
	case <-t.Context().Done():
	}
	if err := c.Stop(); err == nil || !strings.Contains(err.Error(), "no-such-controller") {
		t.Errorf("the error does not repeat what the controller manager says: %v", err)
	}
}

// TestKilledParent kills a process that runs control planes. Their components must end and remove their data, without a
// signal.
func TestKilledParent(t *testing.T) {
	if os.Getenv(assets.Env) != "" {
		return // only our own build watches its parent
	}
	executable := must.Get(os.Executable()).In(t)
	command := exec.CommandContext(t.Context(), executable)
	command.Env = append(os.Environ(), helperEnv+"=1")
	stdout := must.Get(command.StdoutPipe()).In(t)
	must.Do(t, command.Start())
	output, servers := bufio.NewReader(stdout), map[string]string{} // by directory
	for range planes {
		line, err := output.ReadString('\n')
		dir, address, found := strings.Cut(strings.TrimSpace(line), " ")
		if err != nil || !found {
			t.Fatalf("the control plane did not start: %q, %v", line, err)
		}
		server := must.Get(url.Parse(address)).In(t)
		servers[dir] = server.Host
	}
	must.Do(t, command.Process.Kill())
	_ = command.Wait() // the error says that it was killed
	for dir, server := range servers {
		waitGone(t, dir, server)
	}
}

// waitGone waits until a control plane has ended and has removed its data.
func waitGone(t *testing.T, dir, server string) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(startTimeout); ; <-ticker.C {
		connection, dialled := net.Dial("tcp", server)
		if dialled == nil {
			_ = connection.Close()
		}
		_, exists := os.Stat(dir)
		if dialled != nil && os.IsNotExist(exists) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: the API server answers: %t; its directory exists: %t", dir, dialled == nil, exists == nil)
			return
		}
	}
}
