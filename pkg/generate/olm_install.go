package generate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// install is the install strategy: one Deployment, and the rights of its ServiceAccount.
func (b *bundle) install() (map[string]any, error) {
	for _, f := range b.files {
		if f.ServiceAccount != nil {
			return nil, f.Errorf("serviceAccount", "leave it out, or install by the Helm chart or by generate rbac",
				"OLM grants rights to the ServiceAccounts of a bundle only in its own namespace or in the whole cluster")
		}
	}
	rights, err := Rights(b.files, RBACOptions{Kinds: b.Kinds,
		Process: Identity{Namespace: bundleNamespace, Name: b.Package},
		Lease:   b.Package})
	if err != nil {
		return nil, err
	}
	for _, note := range rights.Notes {
		b.notes = append(b.notes, strings.ReplaceAll(note, rights.Process.String(), "ServiceAccount "+b.Package))
	}
	var here, cluster []any
	for _, g := range rights.Grants {
		if g.Namespace == bundleNamespace {
			here = append(here, g.policyRules()...)
			continue
		}
		if g.Namespace != "" {
			b.notes = append(b.notes,
				fmt.Sprintf("operator %s: OLM cannot grant rights in namespace %s alone, so they are granted in the whole cluster",
					g.Operator,
					g.Namespace))
		}
		for _, rule := range g.policyRules() {
			if !slices.ContainsFunc(cluster, func(have any) bool { return fmt.Sprint(have) == fmt.Sprint(rule) }) {
				cluster = append(cluster, rule)
			}
		}
	}
	spec := map[string]any{"deployments": []any{map[string]any{"name": b.Package, "spec": b.deployment()}}}
	for key, rules := range map[string][]any{"permissions": here, "clusterPermissions": cluster} {
		if len(rules) > 0 {
			spec[key] = []any{map[string]any{"serviceAccountName": b.Package, "rules": rules}}
		}
	}
	return spec, nil
}

// deployment is the spec of the Deployment, with what the chart's has.
func (b *bundle) deployment() map[string]any {
	labels := map[string]any{"app": b.Package}
	probe := func(path string) map[string]any {
		return map[string]any{"httpGet": map[string]any{"path": path, "port": "probes"}}
	}
	container := map[string]any{
		"name":  "corollary",
		"image": b.Image,
		"args": []any{"run", "--config=/etc/corollary", "--leader-elect", "--leader-election-id=" + b.Package,
			"--metrics-bind-address=:8080", "--health-probe-bind-address=:8081"},
		"ports": []any{
			map[string]any{"name": "metrics", "containerPort": int64(8080)},
			map[string]any{"name": "probes", "containerPort": int64(8081)},
		},
		"livenessProbe":  probe("/healthz"),
		"readinessProbe": probe("/readyz"),
		"resources":      map[string]any{"requests": map[string]any{"cpu": "50m", "memory": "128Mi"}},
		"securityContext": map[string]any{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
			"capabilities": map[string]any{"drop": []any{"ALL"}},
		},
		"volumeMounts": []any{map[string]any{"name": "config", "mountPath": "/etc/corollary", "readOnly": true}},
	}
	return map[string]any{
		"replicas": int64(2),
		"selector": map[string]any{"matchLabels": labels},
		"strategy": map[string]any{"type": "RollingUpdate",
			"rollingUpdate": map[string]any{"maxUnavailable": int64(0), "maxSurge": int64(1)}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"serviceAccountName": b.Package,
				"enableServiceLinks": false,
				"securityContext": map[string]any{"runAsNonRoot": true,
					"seccompProfile": map[string]any{"type": "RuntimeDefault"}},
				"containers": []any{container},
				"volumes":    []any{map[string]any{"name": "config", "configMap": map[string]any{"name": b.Package}}},
			},
		},
	}
}

// indentedJSON is a value as JSON for people: an annotation holds it.
func indentedJSON(value any) (string, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}
	return string(text), nil
}
