package locks

import (
	"net"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/lock"
)

// TestZooKeeperSilentServer: a server that accepts connections and never answers, as one that is frozen does, is given
// up in the time of one request, so that another one is tried. The client itself would wait for 20 seconds here.
func TestZooKeeperSilentServer(t *testing.T) {
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0")).In(t)
	defer func() { _ = silent.Close() }()
	came := make(chan struct{}, 100)
	go func() {
		for {
			if _, err := silent.Accept(); err != nil {
				return
			}
			came <- struct{}{}
		}
	}()
	f := &load.ActivationFile{}
	f.RenewDeadline = common.Duration(6 * time.Second)
	f.ZooKeeper = &lock.ActivationZooKeeper{Servers: []string{silent.Addr().String()}, Path: "/lock"}
	store := must.Get(Open(f)).In(t)
	go func() { _, _ = store.Get(t.Context()) }() // it gets no answer
	<-came
	select {
	case <-came:
	case <-time.After(12 * time.Second):
		t.Error("it still waits for the server that does not answer")
	}
}
