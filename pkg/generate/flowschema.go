package generate

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/pkg/config/load"
)

// FlowOptions are what API priority and fairness is to know of a process, besides its configs.
type FlowOptions struct {
	// Process is the account that the process runs as. Its Lease is in the same namespace.
	Process Identity
	// Name is part of the names of the objects. They are cluster-scoped, so the namespace of the process comes before it.
	Name string
	// Lease is whether the process has a Lease.
	Lease bool
	// Shares is the part of the API server's capacity for the operators, beside the shares of other priority levels.
	Shares int
}

// The API server compares a request with the schema of the lowest precedence first. Requests of the control plane
// itself come before 1000; the schema for all ServiceAccounts is at 9000. A Lease that is renewed too late stops the
// process, so it goes first.
const (
	leasePrecedence    = 500
	operatorPrecedence = 1000
)

// leaseLevel is a priority level that every API server has, for the renewal of Leases.
const leaseLevel = "leader-election"

// FlowSchemas are a PriorityLevelConfiguration for the requests of the process and of the accounts that its operators
// act as, and the FlowSchemas that put them there. Each account has queues of its own. Renewals of the Lease go to the
// level of leader election.
func FlowSchemas(files []*load.File, o FlowOptions) []Manifest {
	accounts := []Identity{o.Process}
	for _, f := range files {
		if sa := f.ServiceAccount; sa != nil && !slices.Contains(accounts, Identity{sa.Namespace, sa.Name}) {
			accounts = append(accounts, Identity{sa.Namespace, sa.Name})
		}
	}
	o.Name = o.Process.Namespace + "-" + o.Name
	list := []Manifest{o.level()}
	if o.Lease {
		list = append(list, flowSchema(o.Name+"-leases", leaseLevel, leasePrecedence, accounts[:1],
			"Requests about the Lease come first: a process that renews it too late stops.",
			resourceFlow(leases.Group, leases.Resource, []string{"get", "list", "create", "update", "watch",
				"delete"}, o.Process.Namespace)))
	}
	return append(list, flowSchema(o.Name, o.Name, operatorPrecedence, accounts,
		"All other requests; each account has queues of its own.",
		resourceFlow("*", "*", []string{"*"}, "*")))
}

// level is the priority level. It lends half of its part to others while it does not need it.
func (o *FlowOptions) level() Manifest {
	return Manifest{
		Comment: []string{"The share of the API server's capacity for the operators. Requests above it wait in queues, " +
			"and delay nobody else."},
		Object: map[string]any{
			"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "PriorityLevelConfiguration",
			"metadata": metadataOf("", o.Name),
			"spec": map[string]any{"type": string(flowcontrolv1.PriorityLevelEnablementLimited), "limited": map[string]any{
				"nominalConcurrencyShares": int64(o.Shares), "lendablePercent": int64(50),
				"limitResponse": map[string]any{"type": string(flowcontrolv1.LimitResponseTypeQueue),
					"queuing": map[string]any{"queues": int64(64), "handSize": int64(6), "queueLengthLimit": int64(50)}},
			}},
		},
	}
}

func flowSchema(
	name, level string, precedence int64, accounts []Identity, comment string, resources map[string]any,
) Manifest {
	var subjects []any
	for _, a := range accounts {
		subjects = append(subjects, map[string]any{"kind": rbacv1.ServiceAccountKind,
			"serviceAccount": map[string]any{"namespace": a.Namespace, "name": a.Name}})
	}
	rule := map[string]any{"subjects": subjects, "resourceRules": []any{resources}}
	return Manifest{Comment: strings.Split(comment, "\n"), Object: map[string]any{
		"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "FlowSchema", "metadata": metadataOf("", name),
		"spec": map[string]any{
			"priorityLevelConfiguration": map[string]any{"name": level}, "matchingPrecedence": precedence,
			"distinguisherMethod": map[string]any{"type": string(flowcontrolv1.FlowDistinguisherMethodByUserType)},
			"rules":               []any{rule},
		},
	}}
}

// resourceFlow selects requests; "*" is all, cluster-scoped objects included.
func resourceFlow(group, resource string, verbs []string, namespace string) map[string]any {
	m := map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": texts(verbs),
		"namespaces": []any{namespace}}
	if namespace == "*" {
		m["clusterScope"] = true
	}
	return m
}
