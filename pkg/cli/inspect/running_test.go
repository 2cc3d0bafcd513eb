package inspect

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLeaseText: a Lease says whether its holder is running, and since when.
func TestLeaseText(t *testing.T) {
	now := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(-d)} }
	pod, none, seconds := "app-1", "", int32(15)
	for _, test := range []struct {
		lease  coordinationv1.LeaseSpec
		want   string
		reason string
	}{
		{coordinationv1.LeaseSpec{HolderIdentity: &pod, AcquireTime: ago(time.Hour), RenewTime: ago(2 * time.Second),
			LeaseDurationSeconds: &seconds},
			"corollary run is running: app-1 holds Lease ns/app since 2026-11-22T14:00:00Z", "it renews"},
		{coordinationv1.LeaseSpec{HolderIdentity: &pod, AcquireTime: ago(time.Hour), RenewTime: ago(5 * time.Minute),
			LeaseDurationSeconds: &seconds},
			"it is unknown whether corollary run is running: Lease ns/app names app-1 since 2026-11-22T14:00:00Z as its holder; by its own clock " +
				"it last renewed the Lease at 2026-11-22T14:55:00Z, 5m ago by this machine's clock: it has stopped, or the clocks differ; " +
				"it runs if that time changes", "it died, or its clock is behind"},
		{coordinationv1.LeaseSpec{HolderIdentity: &pod, RenewTime: ago(-time.Hour), LeaseDurationSeconds: &seconds},
			"it is unknown whether corollary run is running: Lease ns/app names app-1 as its holder; by its own clock " +
				"it last renewed the Lease at 2026-11-22T16:00:00Z, 60m in the future by this machine's clock: the clocks differ; " +
				"it runs if that time changes", "its clock is ahead, and it may have died"},
		{coordinationv1.LeaseSpec{HolderIdentity: &pod, RenewTime: ago(-time.Second), LeaseDurationSeconds: &seconds},
			"corollary run is running: app-1 holds Lease ns/app", "clocks are never quite equal"},
		{coordinationv1.LeaseSpec{HolderIdentity: &none, RenewTime: ago(time.Second)}, "corollary run is not running: nobody holds Lease ns/app",
			"it stopped and gave the Lease back"},
		{coordinationv1.LeaseSpec{}, "corollary run is not running: nobody holds Lease ns/app", "an empty Lease"},
		{coordinationv1.LeaseSpec{HolderIdentity: &pod},
			"it is unknown whether corollary run is running: Lease ns/app has no renewTime or no leaseDurationSeconds", "somebody else's Lease"},
	} {
		if got := leaseText("ns/app", test.lease, now); got != test.want {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}
}
