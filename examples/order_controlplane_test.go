//go:build controlplane

package examples_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestBlueGreen: those who use the Service see the old pods until all new ones are available.
func TestBlueGreen(t *testing.T) {
	t.Parallel()
	ns, servers := testkit.Namespace(t), platform("bluegreens")
	o := runExample(t, "blue-green")
	state(t, ns, "blue-green")
	available := func(revision string, n int64) {
		t.Helper()
		await(t, replicaSets, ns, "shop-"+revision, fields{})
		setStatus(t, replicaSets, ns, "shop-"+revision, func(rs *unstructured.Unstructured) map[string]any {
			return map[string]any{"observedGeneration": rs.GetGeneration(), "replicas": at(rs, ".spec.replicas"),
				"fullyLabeledReplicas": at(rs, ".spec.replicas"), "readyReplicas": at(rs, ".spec.replicas"), "availableReplicas": n}
		})
	}
	// revision is that of a ReplicaSet with this image.
	revision := func(image string) (found string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			for _, rs := range testkit.List(t, replicaSets, ns, "") {
				if at(&rs, ".spec.template.spec.containers[name=server].image") == image {
					found, _ = at(&rs, ".spec.selector.matchLabels.revision").(string)
				}
			}
			return found != "", "no ReplicaSet has the image " + image
		})
		return found
	}
	selects := func(revision string) fields { return fields{".spec.selector.revision": revision} }
	blue := revision("registry.example.com/shop:3.0")
	available(blue, 2)
	o.idle()
	if testkit.Find(t, services, ns, "shop") != nil {
		t.Error("the Service is there before all pods are available")
	}
	available(blue, 3)
	await(t, services, ns, "shop", selects(blue))
	await(t, servers, ns, "shop", ready("True", "Ready", "").with(fields{".status.active": blue}))

	testkit.Patch(t, servers, ns, "shop", "somebody", `{"spec":{"image":"broken"}}`)
	broken := revision("broken")
	available(broken, 1)
	await(t, servers, ns, "shop", ready("False", "Waiting", "it comes after pods, which is not ready").with(fields{".status.active": blue}))
	o.idle()
	await(t, services, ns, "shop", selects(blue))
	await(t, replicaSets, ns, "shop-"+blue, fields{".spec.replicas": int64(3), ".metadata.deletionTimestamp": nil})
	o.halt()
	o = runExample(t, "blue-green") // a restart changes nothing of that
	o.idle()
	await(t, services, ns, "shop", selects(blue))
	await(t, replicaSets, ns, "shop-"+blue, fields{".metadata.deletionTimestamp": nil})

	testkit.Patch(t, servers, ns, "shop", "somebody", `{"spec":{"image":"fixed"}}`)
	green := revision("fixed")
	await(t, replicaSets, ns, "shop-"+blue, fields{".metadata.deletionTimestamp": nil})
	available(green, 3)
	await(t, services, ns, "shop", selects(green))
	gone(t, replicaSets, ns, "shop-"+blue)
	gone(t, replicaSets, ns, "shop-"+broken)
	await(t, servers, ns, "shop", ready("True", "Ready", "").with(fields{".status.active": green, ".status.availableReplicas": int64(3)}))

	testkit.Patch(t, servers, ns, "shop", "somebody", `{"spec":{"replicas":5}}`)
	testkit.Eventually(t, patience, func() (bool, string) {
		return at(testkit.Get(t, replicaSets, ns, "shop-"+green), ".spec.replicas") == int64(5), "the ReplicaSet is not scaled"
	})
	testkit.Delete(t, servers, ns, "shop")
	gone(t, services, ns, "shop")
	gone(t, replicaSets, ns, "shop-"+green)
}

// TestNetworkStack: what needs the id of the VPC waits for it, and goes before it. The test is the operator of the
// cloud.
func TestNetworkStack(t *testing.T) {
	t.Parallel()
	ns, networks := testkit.Namespace(t), platform("networks")
	o := runExample(t, "network-stack")
	state(t, ns, "network-stack")
	provide := func(resource, name, id string) {
		t.Helper()
		await(t, network(resource), ns, name, fields{})
		setStatus(t, network(resource), ns, name, func(u *unstructured.Unstructured) map[string]any {
			return map[string]any{"observedGeneration": u.GetGeneration(), "id": id, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		})
	}
	await(t, networks, ns, "shop", ready("False", "Waiting", `downstream vpc exists, but (downstream "vpc").status.id is not set`))
	o.idle()
	if n := len(testkit.List(t, network("subnets"), ns, "")) + len(testkit.List(t, network("securitygroups"), ns, "")); n > 0 {
		t.Errorf("%d objects are there before the VPC has an id", n)
	}
	provide("vpcs", "shop", "vpc-7")
	for _, zone := range []string{"a", "b", "c"} {
		await(t, network("subnets"), ns, "shop-eu-1"+zone, fields{".spec.vpcID": "vpc-7", ".spec.zone": "eu-1" + zone})
		provide("subnets", "shop-eu-1"+zone, "subnet-"+zone)
	}
	provide("securitygroups", "shop", "sg-7")
	await(t, networks, ns, "shop", ready("True", "Ready", "").with(fields{".status.vpcID": "vpc-7", ".status.securityGroupID": "sg-7",
		".status.subnetIDs": []any{"subnet-a", "subnet-b", "subnet-c"}}))

	testkit.Patch(t, networks, ns, "shop", "somebody", `{"spec":{"subnets":{"eu-1a":null,"eu-1c":null}}}`)
	gone(t, network("subnets"), ns, "shop-eu-1a")
	gone(t, network("subnets"), ns, "shop-eu-1c")
	await(t, networks, ns, "shop", fields{".status.subnetIDs": []any{"subnet-b"}})

	testkit.Patch(t, network("subnets"), ns, "shop-eu-1b", "cloud", `{"metadata":{"finalizers":["network.example.com/cloud"]}}`)
	testkit.Delete(t, networks, ns, "shop")
	gone(t, network("securitygroups"), ns, "shop")
	o.idle()
	await(t, network("vpcs"), ns, "shop", fields{".metadata.deletionTimestamp": nil})
	testkit.Patch(t, network("subnets"), ns, "shop-eu-1b", "cloud", `{"metadata":{"finalizers":null}}`)
	gone(t, network("vpcs"), ns, "shop")
	gone(t, networks, ns, "shop")
}

// TestIndexedJob: the Job has an index for each part, and is not run again.
func TestIndexedJob(t *testing.T) {
	t.Parallel()
	ns, indexed := testkit.Namespace(t), platform("indexedjobs")
	o := runExample(t, "indexed-job")
	state(t, ns, "indexed-job")
	await(t, jobs, ns, "thumbnails", fields{".spec.completionMode": "Indexed", ".spec.completions": int64(10), ".spec.parallelism": int64(2)})
	count := func(active, succeeded int64, done bool) {
		t.Helper()
		setStatus(t, jobs, ns, "thumbnails", func(*unstructured.Unstructured) map[string]any {
			if done {
				status := jobStatus(true)
				status["succeeded"] = succeeded
				return status
			}
			return map[string]any{"startTime": "2026-01-02T03:04:05Z", "active": active, "succeeded": succeeded}
		})
		await(t, indexed, ns, "thumbnails", fields{".status.active": active, ".status.succeeded": succeeded})
	}
	count(2, 5, false)
	await(t, indexed, ns, "thumbnails", ready("False", "Progressing", "the Job is running"))
	count(0, 10, true)
	await(t, indexed, ns, "thumbnails", ready("True", "Ready", ""))
	testkit.Delete(t, jobs, ns, "thumbnails")
	gone(t, jobs, ns, "thumbnails")
	testkit.Patch(t, indexed, ns, "thumbnails", "somebody", `{"spec":{"image":"other"}}`)
	o.idle()
	if testkit.Find(t, jobs, ns, "thumbnails") != nil {
		t.Error("the Job runs again")
	}
	await(t, indexed, ns, "thumbnails", ready("True", "InSync", "").with(fields{".status.succeeded": int64(10)}))
}
