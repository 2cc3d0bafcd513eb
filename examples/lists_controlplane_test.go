//go:build controlplane

package examples_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestWorkers: the Deployments are those of the entries, whatever their order.
func TestWorkers(t *testing.T) {
	t.Parallel()
	ns, pools := testkit.Namespace(t), platform("workerpools")
	args := ".spec.template.spec.containers[name=worker].args"
	o := runExample(t, "workers")
	state(t, ns, "workers")
	mail := await(t, deployments, ns, "shop-mail", fields{".spec.replicas": int64(1), args: []any{"--queue", "mail"}})
	await(t, deployments, ns, "shop-invoices", fields{".spec.replicas": int64(3), args: []any{"--queue", "invoices-high"}})
	await(t, pools, ns, "shop", ready("False", "Progressing", "worker: ").with(fields{".status.workers": int64(2)}))
	rollOut(t, ns, "shop-mail")
	rollOut(t, ns, "shop-invoices")
	await(t, pools, ns, "shop", ready("True", "Ready", ""))

	testkit.Patch(t, pools, ns, "shop", "somebody", `{"spec":{"workers":[{"name":"exports"},{"name":"mail"}]}}`)
	await(t, deployments, ns, "shop-exports", fields{})
	gone(t, deployments, ns, "shop-invoices")
	o.idle()
	if again := testkit.Get(t, deployments, ns, "shop-mail"); again.GetUID() != mail.GetUID() || again.GetGeneration() != mail.GetGeneration() {
		t.Error("the Deployment of an entry that has only moved was changed")
	}
	testkit.Delete(t, pools, ns, "shop")
	gone(t, deployments, ns, "shop-mail")
	gone(t, deployments, ns, "shop-exports")
}

// TestServicePerPod: a StatefulSet has a Service for each pod while it has the annotation.
func TestServicePerPod(t *testing.T) {
	t.Parallel()
	ns, pod := testkit.Namespace(t), ".spec.selector['statefulset.kubernetes.io/pod-name']"
	runExample(t, "service-per-pod")
	state(t, ns, "service-per-pod")
	for _, name := range []string{"kafka-0", "kafka-1", "kafka-2"} {
		await(t, services, ns, name, fields{pod: name, ".spec.ports[port=9092].name": "port-9092", ".spec.ports[port=80].targetPort": int64(8080)})
	}
	testkit.Patch(t, statefulSets, ns, "kafka", "somebody", `{"spec":{"replicas":1}}`)
	gone(t, services, ns, "kafka-2")
	gone(t, services, ns, "kafka-1")
	await(t, services, ns, "kafka-0", fields{})
	testkit.Patch(t, statefulSets, ns, "kafka", "somebody", `{"metadata":{"annotations":{"platform.example.com/service-per-pod":null}}}`)
	gone(t, services, ns, "kafka-0")
}

// TestServicePerPodLabels: with the downstream in the README, the pods of the StatefulSet have a label, whoever made them and whenever.
func TestServicePerPodLabels(t *testing.T) {
	t.Parallel()
	ns, label := testkit.Namespace(t), ".metadata.labels['platform.example.com/pod']"
	_, rest, _ := strings.Cut(string(read(t, "configs/service-per-pod/README.md")), "```yaml\n")
	downstream, _, _ := strings.Cut(rest, "```")
	o := operate(t, changed(t, "service-per-pod", "conventions:\n", downstream+`
conventions:
  owner: {annotation: platform.example.com/labeled-for}
  finalizer: platform.example.com/labels
`, "kind: StatefulSet\n", "kind: StatefulSet\n  namespaces: ["+ns+"]\n", "service-per-pod\n", "service-per-pod-labels\n"))
	pod := func(name string) {
		testkit.Apply(t, ns, "{apiVersion: v1, kind: Pod, metadata: {name: "+name+", labels: {app: kafka}}, spec: {containers: [{name: kafka, image: kafka}]}}")
	}
	pod("kafka-0")
	state(t, ns, "service-per-pod")
	await(t, pods, ns, "kafka-0", fields{label: "kafka-0", ".metadata.labels.app": "kafka"})
	pod("kafka-1")
	pod("other-0")
	await(t, pods, ns, "kafka-1", fields{label: "kafka-1"})
	testkit.Patch(t, statefulSets, ns, "kafka", "somebody", `{"spec":{"replicas":1}}`)
	await(t, pods, ns, "kafka-1", fields{label: nil, ".metadata.labels.app": "kafka"})
	o.idle()
	await(t, pods, ns, "kafka-0", fields{label: "kafka-0"})
	await(t, pods, ns, "other-0", fields{label: nil})
	testkit.Delete(t, statefulSets, ns, "kafka")
	await(t, pods, ns, "kafka-0", fields{label: nil, ".metadata.labels.app": "kafka"})
	gone(t, statefulSets, ns, "kafka")
}

// TestCertificates: each TLS entry has a Certificate.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	o := runExample(t, "certificates")
	state(t, ns, "certificates")
	await(t, certificates, ns, "shop-tls", fields{".spec.dnsNames": []any{"shop.example.com", "www.shop.example.com"}, ".spec.issuer": map[string]any{"kind": "Issuer", "name": "letsencrypt"}})
	await(t, certificates, ns, "api-tls", fields{".spec.secretName": "api-tls"})

	two := `{"spec":{"tls":[{"secretName":"shop-tls","hosts":["a.example.com"]},{"secretName":"shop-tls","hosts":["b.example.com"]}]}}`
	testkit.Patch(t, ingresses, ns, "shop", "somebody", two) // two entries for one Certificate: everything stays
	o.idle()
	await(t, certificates, ns, "shop-tls", fields{".spec.dnsNames": []any{"shop.example.com", "www.shop.example.com"}})
	await(t, certificates, ns, "api-tls", fields{})
	testkit.Patch(t, ingresses, ns, "shop", "somebody", `{"spec":{"tls":[{"secretName":"shop-tls","hosts":["a.example.com"]}]}}`)
	await(t, certificates, ns, "shop-tls", fields{".spec.dnsNames": []any{"a.example.com"}})
	gone(t, certificates, ns, "api-tls")
}

// TestScheduledJob: each overlay has a CronJob, which follows the base where the overlay says nothing.
func TestScheduledJob(t *testing.T) {
	t.Parallel()
	ns, scheduled := testkit.Namespace(t), platform("scheduledjobs")
	pod := ".spec.jobTemplate.spec.template.spec.containers[name=job]"
	runExample(t, "scheduled-job")
	state(t, ns, "scheduled-job")
	await(t, cronJobs, ns, "report-production", fields{".spec.schedule": "0 3 * * *", pod + ".env[name=DATABASE].value": "reports",
		pod + ".resources.requests": map[string]any{"cpu": "100m", "memory": "2Gi"}})
	await(t, cronJobs, ns, "report-staging", fields{".spec.schedule": "0 5 * * 1", pod + ".env[name=DATABASE].value": "reports-staging",
		pod + ".env[name=SMTP].value": "mail.example.com"})
	await(t, cronJobs, ns, "report-development", fields{".spec.suspend": true})
	await(t, scheduled, ns, "report", ready("True", "Ready", ""))

	testkit.Patch(t, scheduled, ns, "report", "somebody", `{"spec":{"base":{"schedule":"0 4 * * *"},"overlays":{"development":null}}}`)
	await(t, cronJobs, ns, "report-production", fields{".spec.schedule": "0 4 * * *"})
	gone(t, cronJobs, ns, "report-development")
	await(t, cronJobs, ns, "report-staging", fields{".spec.schedule": "0 5 * * 1"})
}
