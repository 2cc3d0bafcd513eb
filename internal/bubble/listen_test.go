package bubble_test

import (
	"os"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestListen: a typed client, which sends protobuf, reaches the API server by its kubeconfig and sees at once what is
// written; subtests have the same API server, and its audit has what the client wrote.
func TestListen(t *testing.T) {
	t.Parallel()
	bubble.Listen(t)
	text := must.Get(os.ReadFile(testkit.Kubeconfig(t))).In(t)
	config := must.Get(clientcmd.RESTConfigFromKubeConfig(text)).In(t)
	config.Impersonate.UserName = "somebody"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client := must.Get(kubernetes.NewForConfig(config)).In(t)
	ns, holder := testkit.Namespace(t), "somebody"
	leases := client.CoordinationV1().Leases(ns)
	watch := must.Get(leases.Watch(t.Context(), metav1.ListOptions{})).In(t)
	defer watch.Stop()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	must.Get(leases.Create(t.Context(), lease, metav1.CreateOptions{})).In(t)
	event := <-watch.ResultChan()
	if got, ok := event.Object.(*coordinationv1.Lease); !ok || *got.Spec.HolderIdentity != holder {
		t.Errorf("the watch delivers %+v", event)
	}
	stored := schema.GroupVersionResource{Group: coordinationv1.GroupName, Version: "v1", Resource: "leases"}
	t.Run("part/of it", func(t *testing.T) { testkit.Get(t, stored, ns, "one") })
	if err := leases.Delete(t.Context(), "one", *metav1.NewDeleteOptions(0)); err != nil {
		t.Error(err)
	}
	if testkit.Find(t, stored, ns, "one") != nil {
		t.Error("it was not deleted")
	}
	if written := testkit.Audit(t, testkit.By("somebody"), testkit.Request.Mutating); len(written) != 2 {
		t.Errorf("the audit has %+v", written)
	}
}
