package shards

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// MostShards is the greatest N.
const MostShards = 1024

// names are those of the Leases of a set, and of what is written on them: all begin with the id of the election, so
// that no name is compiled in.
type names struct{ id string }

func (n names) process(name string) string { return n.id + "-process-" + name }

func (n names) shard(k int) string { return n.id + "-shard-" + strconv.Itoa(k) }

// label is on the Leases of processes and shards; its value is N. The annotations are about one shard, but dead, which
// is on the Lease of a process that another one has taken away from it.
func (n names) label() string   { return n.id + "/shards" }
func (n names) loading() string { return n.id + "/loading" }
func (n names) deaths() string  { return n.id + "/deaths" }
func (n names) group() string   { return n.id + "/group" }
func (n names) dead() string    { return n.id + "/dead" }

// processOf returns the name of a process by its Lease.
func (n names) processOf(lease string) (string, bool) {
	return strings.CutPrefix(lease, n.id+"-process-")
}

// shardOf returns the number of a shard by its Lease.
func (n names) shardOf(lease string) (int, bool) {
	text, ok := strings.CutPrefix(lease, n.id+"-shard-")
	k, err := strconv.Atoi(text)
	return k, ok && err == nil && k >= 0 && n.shard(k) == lease
}

// Name is how the Lease of the election names a set of N shards.
func Name(n int) string { return fmt.Sprintf("set of %d shards", n) }

var setName = regexp.MustCompile(`^set of ([0-9]+) shards$`)

// NumberOf returns the number of shards that a holder of the Lease of the election has; false if it has none.
func NumberOf(holder string) (int, bool) {
	match := setName.FindStringSubmatch(holder)
	if match == nil {
		return 0, false
	}
	n, err := strconv.Atoi(match[1])
	return n, err == nil
}

// released is the lease duration in a record that its holder has given back. A holder that was taken out by hand leaves
// another.
const released = 1

// record is what the Lease of a shard says.
type record struct {
	holder   string
	given    bool // nobody holds it, and it was given back
	token    leadership.Token
	changed  time.Time // when it changed hands, by the clock of who wrote it
	duration time.Duration
	loading  bool
	deaths   int
	group    int
}

// read reads the Lease of a shard. What was written on it for another number of shards is about other objects.
func (n names) read(lease *coordinationv1.Lease, number int) record {
	spec := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	r := record{holder: spec.HolderIdentity, token: leadership.Token(spec.LeaderTransitions), changed: spec.RenewTime.Time,
		duration: time.Duration(spec.LeaseDurationSeconds) * time.Second}
	r.given = r.holder == "" && spec.LeaseDurationSeconds == released
	if lease.Labels[n.label()] != strconv.Itoa(number) {
		return r
	}
	_, r.loading = lease.Annotations[n.loading()]
	r.deaths, r.group = count(lease.Annotations[n.deaths()]), count(lease.Annotations[n.group()])
	return r
}

// count reads a number that a process wrote; anything else is 0.
func count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// write returns the Lease of a shard with the record; lease is what there is, nil if there is none.
func (n names) write(lease *coordinationv1.Lease, namespace string, k, number int, r record) *coordinationv1.Lease {
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.shard(k)}}
	}
	lease = lease.DeepCopy()
	metav1.SetMetaDataLabel(&lease.ObjectMeta, n.label(), strconv.Itoa(number))
	for key, value := range map[string]int{n.deaths(): r.deaths, n.group(): r.group} {
		if value == 0 {
			delete(lease.Annotations, key)
			continue
		}
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, key, strconv.Itoa(value))
	}
	delete(lease.Annotations, n.loading())
	if r.loading {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, n.loading(), "true")
	}
	at := metav1.NewTime(r.changed)
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&leadership.Record{HolderIdentity: r.holder,
		LeaseDurationSeconds: int(r.duration / time.Second), AcquireTime: at, RenewTime: at, LeaderTransitions: int(r.token)})
	return lease
}

// free is the record of a shard that is given back.
func (r record) free(now time.Time) record {
	r.holder, r.given, r.loading, r.changed, r.duration = "", true, false, now, released*time.Second
	return r
}
