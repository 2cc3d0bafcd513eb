package convert_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert/suggest"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, spoke, hub string
		want               string
	}{
		{"what both have needs no rule", `{a: {type: string}}`, `{a: {type: string}}`, `{}`},
		{"another name, the only one of its type", `{size: {type: integer}, a: {type: string}}`, `{replicas: {type: integer}, a: {type: string}}`, `{}`},
		{"a name that is near", `{replicaCount: {type: integer}}`, `{replicas: {type: integer}, other: {type: integer}}`, `{}`},
		{"the same name elsewhere", `{image: {type: string}}`, `{container: {type: object, properties: {image: {type: string}, tag: {type: string}}}}`,
			`rules: [{move: .spec.image, to: .spec.container.image}]`},
		{"an object that moves as a whole", `{limits: {type: object, properties: {cpu: {type: string}, memory: {type: string}}}}`,
			`{resources: {type: object, properties: {limits: {type: object, properties: {cpu: {type: string}, memory: {type: string}}}}}}`,
			`rules: [{move: .spec.limits, to: .spec.resources.limits}]`},
		{"one that becomes a list", `{host: {type: string}}`, `{hosts: {type: array, items: {type: string}}}`,
			`rules: [{wrap: .spec.host, to: .spec.hosts}]`},
		{"a list that becomes one", `{hosts: {type: array, items: {type: string}}}`, `{host: {type: string}}`,
			`rules: [{unwrap: .spec.hosts, to: .spec.host}]`},
		{"a name inside the items of a list", `{l: {type: array, items: {type: object, properties: {path: {type: string}, "n": {type: integer}}}}}`,
			`{l: {type: array, items: {type: object, properties: {mountPath: {type: string}, "n": {type: integer}}}}}`,
			`rules: [{forEach: .spec.l, rules: [{move: .path, to: .mountPath}]}]`},
		{"another type inside the items of a map", `{m: {type: object, additionalProperties: {type: object, properties: {size: {type: string}}}}}`,
			`{m: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}}}}}`,
			`rules: [{forEach: .spec.m, toHub: [{set: .size, expression: int(self.size)}], fromHub: [{set: .size, expression: string(self.size)}]}]`},
		{"words of an enum", `{mode: {type: string, enum: [enable, disable]}}`, `{mode: {type: string, enum: [Enabled, Disabled]}}`,
			`rules: [{move: .spec.mode, values: {enable: Enabled, disable: Disabled}}]`},
		{"another type", `{port: {type: string}}`, `{port: {type: integer}}`,
			`{toHub: [{set: .spec.port, expression: int(self.spec.port)}], fromHub: [{set: .spec.port, expression: string(self.spec.port)}]}`},
		{"nothing alike", `{a: {type: string}, b: {type: string}}`, `{x: {type: string}, "y": {type: string}}`, `{}`},
		{"each field once", `{name: {type: string}}`, `{names: {type: array, items: {type: string}}, nam: {type: string}}`,
			`rules: [{wrap: .spec.name, to: .spec.names}]`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			_, versions := define(t, crdOf(row.spoke, row.hub))
			got, _ := suggest.Suggest(versions[0], versions[1])
			var want conversion.Spoke
			must.Do(t, yaml.Unmarshal([]byte(row.want), &want))
			want.Version = "v1beta1"
			must.Same(t, want, got)
		})
	}
}

// TestSuspected: renamings that the draft leaves out, and mentions.
func TestSuspected(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, spoke, hub, want string }{
		{"another name, the only one of its type", `{size: {type: integer}, a: {type: string}}`, `{replicas: {type: integer}, a: {type: string}}`,
			`[{move: .spec.size, to: .spec.replicas}]`},
		{"one of two", `{schedule: {type: string}}`, `{cron: {type: string}, timeZone: {type: string}}`,
			`[{move: .spec.schedule, to: .spec.cron}, {move: .spec.schedule, to: .spec.timeZone}]`},
		{"another place", `{a: {type: string}}`, `{o: {type: object, properties: {b: {type: string}, c: {type: integer}}}}`, `[]`},
		{"nothing alike, and others have the type", `{a: {type: string}, b: {type: string}}`, `{x: {type: string}, "y": {type: string}}`, `[]`},
		{"what is drafted", `{hostname: {type: string}}`, `{host: {type: string}}`, `[]`},
		{"another type", `{a: {type: string}}`, `{b: {type: integer}}`, `[]`},
	} {
		_, versions := define(t, crdOf(row.spoke, row.hub))
		got := suggest.Suspected(versions[0], versions[1])
		want := []conversion.ConversionRule{}
		must.Do(t, yaml.Unmarshal([]byte(row.want), &want))
		must.Same(t, want, append([]conversion.ConversionRule{}, got...), row.reason)
	}
}
