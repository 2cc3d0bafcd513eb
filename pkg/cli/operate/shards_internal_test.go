package operate

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// TestShardsOfOtherClocks: a process writes the time of its own clock, which may differ. Of one whose time is old, or in
// the future, it is said what is known: neither that it is alive nor that it has died.
func TestShardsOfOtherClocks(t *testing.T) {
	now := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)
	lease := func(name, holder string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app/shards": "3"}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: renewed}}}
	}
	set := lease("app", shards.Name(3), now)
	set.Labels = nil
	client := fake.NewSimpleClientset(set,
		lease("app-process-good", "good", now.Add(-time.Second)), lease("app-shard-0", "good", now),
		lease("app-process-behind", "behind", now.Add(-20*time.Second)), lease("app-shard-1", "behind", now),
		lease("app-process-ahead", "ahead", now.Add(time.Hour)), lease("app-shard-2", "ahead", now),
	).CoordinationV1().Leases("ns")
	var out strings.Builder
	if err := writeShards(&out, must.Get(shards.Read(t.Context(), client, "app", now)).In(t), now); err != nil {
		t.Fatal(err)
	}
	const want = `SHARD   STATE    PROCESS   AGE   TOKEN   DEATHS
0       held     good      0s    0       0
1       silent   behind    0s    0       0
2       silent   ahead     0s    0       0

3 shards, 1 processes: each holds from 1 to 1; 0 in quarantine
process ahead: by its own clock it last renewed the Lease at 2026-11-22T16:00:00Z, 60m in the future by this machine's clock: the clocks differ; it runs if that time changes
process behind: by its own clock it last renewed the Lease at 2026-11-22T14:59:40Z, 20s ago by this machine's clock: it has stopped, or the clocks differ; it runs if that time changes
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
