{{/*
The rights that the operators need, as `corollary generate rbac` derives them from the same configs; a test holds the two to
each other. They are gathered in a map of roles, one for each operator, place and account:

  KEY: {operator: "" for what the process needs for itself, namespace: "" for everywhere, to: NAMESPACE/NAME of an account,
        rules: {KEY: {group, resource, names, verbs}}}

  {{- range include "corollary.rights" . | fromJson }}
*/}}
{{- define "corollary.rights" -}}
{{- $roles := dict -}}
{{- $process := printf "%s/%s" .Release.Namespace (include "corollary.serviceAccountName" .) -}}
{{- $own := dict "roles" $roles "to" $process "operator" "" "places" (list .Release.Namespace) -}}

{{- /* Leader election. What does not exist has no name yet; who leads is told by an event. */ -}}
{{- $lease := include "corollary.leaderElectionId" . -}}
{{- include "corollary.rights.allow" (merge (dict "group" "coordination.k8s.io" "resource" "leases" "verbs" (list "create")) $own) -}}
{{- include "corollary.rights.allow" (merge (dict "group" "coordination.k8s.io" "resource" "leases" "names" (list $lease) "verbs" (list "get" "watch" "update")) $own) -}}
{{- /* The Leases of shards and of the processes that share them have names that are not known before. */ -}}
{{- if .Values.shards -}}
  {{- include "corollary.rights.allow" (merge (dict "group" "coordination.k8s.io" "resource" "leases" "verbs" (list "get" "list" "update" "delete")) $own) -}}
{{- end -}}
{{- include "corollary.rights.allow" (merge (dict "group" "events.k8s.io" "resource" "events" "verbs" (list "create")) $own) -}}

{{- $written := without .Values.conversion.crds -}}
{{- range $key := list "verify" "migrate" -}}
  {{- range get $.Values.conversion $key -}}
    {{- if not (has . $.Values.conversion.crds) -}}
      {{- fail (printf "conversion.%s has %s, which is not in conversion.crds: add it there" $key .) -}}
    {{- end -}}
    {{- if eq $key "verify" }}{{ $written = without $written . }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- $definitions := dict "group" "apiextensions.k8s.io" "resource" "customresourcedefinitions" "places" (list "") -}}
{{- with $written -}}
  {{- include "corollary.rights.allow" (merge (dict "names" . "verbs" (list "get" "patch")) $definitions $own) -}}
{{- end -}}
{{- with .Values.conversion.verify -}}
  {{- include "corollary.rights.allow" (merge (dict "names" . "verbs" (list "get")) $definitions $own) -}}
{{- end -}}
{{- with .Values.conversion.crds -}}
  {{- include "corollary.rights.allow" (merge (dict "group" "events.k8s.io" "resource" "events" "verbs" (list "create" "patch") "places" (list "default")) $own) -}}
  {{- $secret := dict "group" "" "resource" "secrets" "names" (list (include "corollary.webhookSecret" $)) -}}
  {{- include "corollary.rights.allow" (merge (dict "verbs" (list "get")) $secret $own) -}}
  {{- if not (include "corollary.webhookSecretReadOnly" $) -}}
    {{- include "corollary.rights.allow" (merge (dict "group" "" "resource" "secrets" "verbs" (list "create")) $own) -}}
    {{- include "corollary.rights.allow" (merge (dict "verbs" (list "update")) $secret $own) -}}
  {{- end -}}
{{- end -}}
{{- range .Values.conversion.migrate -}}
  {{- $crd := splitn "." 2 . -}}
  {{- $objects := merge (dict "group" $crd._1 "places" (list "")) $own -}}
  {{- include "corollary.rights.allow" (merge (dict "resource" $crd._0 "verbs" (list "list" "get" "patch")) $objects) -}}
  {{- include "corollary.rights.allow" (merge (dict "resource" (printf "%s/status" $crd._0) "verbs" (list "patch")) $objects) -}}
{{- end -}}
{{- with .Values.conversion.migrate -}}
  {{- include "corollary.rights.allow" (merge (dict "group" "apiextensions.k8s.io" "resource" "customresourcedefinitions/status" "names" . "verbs" (list "patch") "places" (list "")) $own) -}}
  {{- include "corollary.rights.allow" (merge (dict "group" "events.k8s.io" "resource" "events" "verbs" (list "create" "patch") "places" (list "default")) $own) -}}
{{- end -}}
{{- range $name, $operator := include "corollary.operators" . | fromJson -}}
  {{- $context := dict "root" $ "roles" $roles "process" $process "to" $process "name" $name "config" $operator -}}
  {{- with $operator.serviceAccount -}}
    {{- $_ := set $context "to" (printf "%s/%s" .namespace .name) -}}
    {{- include "corollary.rights.allow" (merge (dict "group" "" "resource" "serviceaccounts" "names" (list .name) "verbs" (list "impersonate") "places" (list .namespace)) $own) -}}
  {{- end -}}
  {{- include "corollary.rights.operator" $context -}}
{{- end -}}
{{- toJson $roles -}}
{{- end -}}

{{/*
What one operator needs: {root, roles, process, to, name, config}.
*/}}
{{- define "corollary.rights.operator" -}}
{{- $config := .config -}}
{{- $watch := default dict $config.watch -}}
{{- $up := include "corollary.rights.upstream" . | fromJson -}}
{{- $within := include "corollary.rights.places" (dict "within" $watch.namespaces "kind" $up) | fromJsonArray -}}
{{- $observing := eq (default "Enforce" $config.mode) "Observe" -}}
{{- $status := ne (toString ($config.status).enabled) "false" -}}
{{- $before := and (not $observing) ($config.deletion).before -}}
{{- $read := list "list" "watch" -}}
{{- $own := dict "roles" .roles "to" .to "operator" .name -}}
{{- /* The process asks for the definition of a kind that is not served. */ -}}
{{- $process := dict "root" .root "roles" .roles "to" .process -}}

{{- /* The Secrets of connection strings: to read the source and inputs, and to write back. */ -}}
{{- $connections := list (dict "dsnFrom" ($config.source).writeDSNFrom) -}}
{{- range prepend (default list $config.inputs) (dict "sql" $config.source) -}}
  {{- $connections = concat $connections (list (.sql).postgres (.sql).mysql) -}}
{{- end -}}
{{- range $connections -}}
  {{- with (((.).dsnFrom).secret) -}}
    {{- include "corollary.rights.allow" (merge (dict "group" "" "resource" "secrets" "names" (list .name) "verbs" (list "get") "places" (list .namespace)) $own) -}}
  {{- end -}}
{{- end -}}

{{- /* Upstreams: read past the watch, too, where a write of the status may be refused or one may have lost its label. */ -}}
{{- if $config.watch -}}
  {{- $upstreams := merge (dict "group" $up.group "resource" $up.resource "places" $within) $own -}}
  {{- include "corollary.rights.allow" (merge (dict "verbs" $read) $upstreams) -}}
  {{- if or $status (not (kindIs "invalid" $watch.labelSelector)) $watch.matchConditions $before -}}
    {{- include "corollary.rights.allow" (merge (dict "verbs" (list "get")) $upstreams) -}}
  {{- end -}}
  {{- if and (not $observing) (include "corollary.rights.finalizers" .) -}}
    {{- include "corollary.rights.allow" (merge (dict "verbs" (list "patch")) $upstreams) -}}
  {{- end -}}
  {{- if $status -}}
    {{- $resource := $up.status | ternary (printf "%s/status" $up.resource) $up.resource -}}
    {{- include "corollary.rights.allow" (merge (dict "resource" $resource "verbs" (list "patch")) $upstreams) -}}
  {{- end -}}
{{- end -}}
{{- if not (kindIs "invalid" $watch.namespaceSelector) -}}
  {{- $names := $up.namespaced | ternary $watch.namespaces nil -}}
  {{- include "corollary.rights.allow" (merge (dict "group" "" "resource" "namespaces" "names" $names "verbs" $read "places" (list "")) $own) -}}
{{- end -}}

{{- /* Downstreams: making one by server-side apply takes create and patch; of an object of somebody else, only patch. */ -}}
{{- range $config.downstreams -}}
  {{- $verbs := list "get" "list" "watch" -}}
  {{- if not $observing -}}
    {{- include "corollary.rights.definition" (merge (dict "of" .) $process) -}}
    {{- $verbs = append $verbs "patch" -}}
    {{- if ne (default "Object" .ownership) "Fields" -}}
      {{- $verbs = append $verbs "create" -}}
      {{- if or (eq (default "Delete" .deletionPolicy) "Delete") (eq (default "Apply" .updatePolicy) "Recreate") -}}
        {{- $verbs = append $verbs "delete" -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- include "corollary.rights.target" (merge (dict "root" $.root "config" $config "of" . "verbs" $verbs) $own) -}}
{{- end -}}
{{- with $before -}}
  {{- include "corollary.rights.definition" (merge (dict "of" .) $process) -}}
  {{- include "corollary.rights.target" (merge (dict "root" $.root "config" $config "of" . "verbs" (list "get" "list" "watch" "create" "patch" "delete")) $own) -}}
{{- end -}}

{{- /* Inputs: one object by its name, where that is fixed. A list may name its namespaces, or "*" for all. */ -}}
{{- range $config.inputs -}}
{{- if not .sql -}}
  {{- $kind := include "corollary.rights.kind" (dict "root" $.root "of" .) | fromJson -}}
  {{- $watched := $up.namespaced | ternary $watch.namespaces nil -}}
  {{- $within := (.list).namespaces | default (empty .namespace | ternary $watched (list .namespace)) -}}
  {{- $in := include "corollary.rights.places" (dict "within" (has "*" (default list $within) | ternary nil $within) "kind" $kind) | fromJsonArray -}}
  {{- $names := empty .fixedName | ternary list (list .fixedName) -}}
  {{- include "corollary.rights.allow" (merge (dict "group" $kind.group "resource" $kind.resource "names" $names "verbs" $read "places" $in) $own) -}}
  {{- if eq (default "Wait" .missing) "Allow" -}}
    {{- include "corollary.rights.definition" (merge (dict "of" .) $process) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
{{- range $observing | ternary list (list ($config.guard).confirm ($config.rollout).control) -}}
{{- with . -}}
  {{- include "corollary.rights.allow" (merge (dict "group" "" "resource" "configmaps" "names" (list .configMap) "verbs" $read "places" (list .namespace)) $own) -}}
{{- end -}}
{{- end -}}

{{- /* Events are the process's: beside upstreams, and about the operator as a whole beside the process. */ -}}
{{- if not (or $observing (eq (default "Warnings" $config.events) "None")) -}}
  {{- $beside := $up.namespaced | ternary $within (list "default") -}}
  {{- $events := dict "roles" .roles "to" .process "group" "events.k8s.io" "resource" "events" "verbs" (list "create" "patch") -}}
  {{- include "corollary.rights.allow" (merge (dict "operator" (eq .to .process | ternary .name "") "places" $beside) $events) -}}
  {{- if not (or (has "" $beside) (has .root.Release.Namespace $beside)) -}}
    {{- include "corollary.rights.allow" (merge (dict "operator" "" "places" (list .root.Release.Namespace)) $events) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/*
What `corollary release` needs to take finalizers off, and owner references off what is kept, in the form of corollary.rights: {root, to: NAMESPACE/NAME}.
*/}}
{{- define "corollary.releaseRights" -}}
{{- $roles := dict -}}
{{- range $name, $config := include "corollary.operators" .root | fromJson -}}
  {{- $own := dict "root" $.root "config" $config "roles" $roles "to" $.to "operator" $name "verbs" (list "list" "patch") -}}
  {{- if and $config.watch (include "corollary.rights.finalizers" $own) -}}
    {{- include "corollary.rights.definition" (dict "root" $.root "roles" $roles "to" $.to "of" $config.watch) -}}
    {{- $up := include "corollary.rights.kind" (dict "root" $.root "of" $config.watch) | fromJson -}}
    {{- $within := include "corollary.rights.places" (dict "within" $config.watch.namespaces "kind" $up) | fromJsonArray -}}
    {{- include "corollary.rights.allow" (merge (dict "group" $up.group "resource" $up.resource "places" $within) $own) -}}
    {{- with ($config.deletion).before -}}
      {{- include "corollary.rights.definition" (dict "root" $.root "roles" $roles "to" $.to "of" .) -}}
      {{- include "corollary.rights.target" (merge (dict "of" .) $own) -}}
    {{- end -}}
    {{- range $config.downstreams -}}
      {{- if and (eq (default "Delete" .deletionPolicy) "Orphan") (ne (default "Object" .ownership) "Fields") -}}
        {{- include "corollary.rights.definition" (dict "root" $.root "roles" $roles "to" $.to "of" .) -}}
        {{- include "corollary.rights.target" (merge (dict "of" .) $own) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- toJson $roles -}}
{{- end -}}

{{/*
The kind of the upstreams, as corollary.rights.kind gives it; rows of a database are in no namespace: {root, config}.
*/}}
{{- define "corollary.rights.upstream" -}}
{{- with .config.watch }}{{ include "corollary.rights.kind" (dict "root" $.root "of" .) }}{{ else }}{"namespaced": false}{{ end -}}
{{- end -}}

{{/*
Adds verbs on a resource to the roles: {roles, operator, places, to, group, resource, names, verbs}.
*/}}
{{- define "corollary.rights.allow" -}}
{{- range $place := .places -}}
  {{- $key := printf "%s/%s/%s" $.operator $place $.to -}}
  {{- $role := get $.roles $key | default (dict "operator" $.operator "namespace" $place "to" $.to "rules" dict) -}}
  {{- $names := default list $.names -}}
  {{- $about := printf "%s/%s/%s" $.group $.resource (join "," $names) -}}
  {{- $rule := get $role.rules $about | default (dict "group" $.group "resource" $.resource "names" $names "verbs" list) -}}
  {{- $_ := set $rule "verbs" (concat $rule.verbs $.verbs | uniq) -}}
  {{- $_ := set $role.rules $about $rule -}}
  {{- $_ := set $.roles $key $role -}}
{{- end -}}
{{- end -}}

{{/*
Lets an account ask whether a kind that is not served is gone, unless it is one of Kubernetes' own: {root, roles, to, of}.
*/}}
{{- define "corollary.rights.definition" -}}
{{- if (include "corollary.rights.kind" . | fromJson).custom -}}
  {{- include "corollary.rights.allow" (dict "roles" .roles "to" .to "operator" "" "places" (list "") "group" "apiextensions.k8s.io" "resource" "customresourcedefinitions" "verbs" (list "list")) -}}
{{- end -}}
{{- end -}}

{{/*
Adds verbs on what is made of a template, where its targetNamespaces allow: {root, roles, operator, to, config, of, verbs}.
*/}}
{{- define "corollary.rights.target" -}}
{{- $kind := include "corollary.rights.kind" (dict "root" .root "of" .of) | fromJson -}}
{{- $allowed := default dict .of.targetNamespaces -}}
{{- $within := dict "Same" (.config.watch).namespaces "List" $allowed.names "Any" nil -}}
{{- $places := include "corollary.rights.places" (dict "within" (get $within (default "Same" $allowed.from)) "kind" $kind) | fromJsonArray -}}
{{- include "corollary.rights.allow" (merge (dict "group" $kind.group "resource" $kind.resource "places" $places) .) -}}
{{- end -}}

{{/*
Where a role is needed for a kind within namespaces, as JSON; "" is everywhere: {within, kind}. What the command would refuse
is refused here too: it must not become a right to everywhere.
*/}}
{{- define "corollary.rights.places" -}}
{{- if and (kindIs "slice" .within) (not .within) -}}
  {{- fail "a config has an empty list of namespaces: leave it out for all of them; corollary check -c FILE reports where" -}}
{{- end -}}
{{- range .within -}}
  {{- if not (kindIs "string" .) -}}
    {{- fail (printf "a config names a namespace that YAML reads as %v, not as text: quote it; corollary check -c FILE reports where" .) -}}
  {{- end -}}
{{- end -}}
{{- toJson (and .kind.namespaced .within | default (list "")) -}}
{{- end -}}

{{/*
What is known of a kind that a config names, as JSON {group, resource, namespaced, status, custom}: from the values, from a config that
describes it, from the table of built-in kinds, else guessed as kubectl does: a regular plural, namespaced, with a status. {root, of: {apiVersion, kind}}
*/}}
{{- define "corollary.rights.kind" -}}
{{- $name := include "corollary.rights.kindName" .of -}}
{{- $plural := lower .of.kind -}}
{{- if hasSuffix "endpoints" $plural -}}
{{- else if hasSuffix "s" $plural -}}
  {{- $plural = printf "%ses" $plural -}}
{{- else if hasSuffix "y" $plural -}}
  {{- $plural = printf "%sies" (trimSuffix "y" $plural) -}}
{{- else -}}
  {{- $plural = printf "%ss" $plural -}}
{{- end -}}
{{- if not .root.corollaryKinds -}}
  {{- include "corollary.rights.readKinds" .root -}}
{{- end -}}
{{- $kind := dict "group" (splitn "." 2 $name)._1 "resource" $plural "namespaced" true "status" true "custom" true -}}
{{- range list .root.corollaryKinds (default dict .root.Values.kinds) -}}
  {{- range $key, $value := get . $name | default dict -}}
    {{- $_ := set $kind $key $value -}}
  {{- end -}}
{{- end -}}
{{- toJson $kind -}}
{{- end -}}

{{/* Kind.group, or the kind in the core group: {apiVersion, kind}. */}}
{{- define "corollary.rights.kindName" -}}
{{- contains "/" .apiVersion | ternary (printf "%s.%s" .kind (splitList "/" .apiVersion | first)) .kind -}}
{{- end -}}

{{/* Reads the built-in kinds, and those that configs describe, into corollaryKinds of the root: once, since the table is long. */}}
{{- define "corollary.rights.readKinds" -}}
{{- $kinds := .Files.Get "files/kinds.yaml" | fromYaml -}}
{{- range $kinds }}{{ $_ := set . "custom" false }}{{ end -}}
{{- range include "corollary.operators" . | fromJson -}}
  {{- $watch := default dict .watch -}}
  {{- with $watch.schema -}}
    {{- $kind := dict "namespaced" (ne (toString .scope) "Cluster") -}}
    {{- with .plural }}{{ $_ := set $kind "resource" . }}{{ end -}}
    {{- $_ := set $kinds (include "corollary.rights.kindName" $watch) $kind -}}
  {{- end -}}
{{- end -}}
{{- $_ := set . "corollaryKinds" $kinds -}}
{{- end -}}

{{/*
The finalizers that a config names, now and for before, one of its own or of the file of conventions that it shares:
empty where there is none. {root, config}
*/}}
{{- define "corollary.rights.finalizers" -}}
{{- $shared := dict -}}
{{- with .config.conventionsFile -}}
  {{- $shared = get $.root.Values.files (clean .) | fromYaml -}}
{{- end -}}
{{- range list .config.conventions $shared.conventions | compact -}}
  {{- list .finalizer (.previous).finalizer | compact | join " " -}}
{{- end -}}
{{- end -}}

{{/*
A role and its binding, of those that corollary.rights gathers: {root, role, name: what its name begins with, annotations}.
*/}}
{{- define "corollary.role" -}}
{{- $kind := empty .role.namespace | ternary "ClusterRole" "Role" -}}
{{- /* Outside of the release's namespace that stands before the name: releases of one name have roles of their own there. */}}
{{- $name := eq (toString .role.namespace) .root.Release.Namespace | ternary .name (printf "%s:%s" .root.Release.Namespace .name) -}}
{{- $metadata := dict "name" (list $name .role.operator | compact | join "-") "labels" (include "corollary.labels" .root | fromYaml) -}}
{{- with .role.namespace }}{{ $_ := set $metadata "namespace" . }}{{ end -}}
{{- with .annotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
---
# What {{ empty .role.operator | ternary "the process itself" (printf "operator %s" .role.operator) }} needs {{ empty .role.namespace | ternary "everywhere" "here" }}.
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  {{- toYaml $metadata | nindent 2 }}
rules:
  {{- range .role.rules }}
  {{- $granted := .verbs }}
  {{- $verbs := list }}
  {{- range list "impersonate" "get" "list" "watch" "create" "update" "patch" "delete" }}
    {{- if has . $granted }}{{ $verbs = append $verbs . }}{{ end }}
  {{- end }}
  - apiGroups: [{{ .group | quote }}]
    resources: [{{ .resource }}]
    {{- with .names }}
    resourceNames: {{ toJson . }}
    {{- end }}
    verbs: [{{ join ", " $verbs }}]
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  {{- toYaml $metadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $metadata.name | toYaml }}
subjects:
  - kind: ServiceAccount
    namespace: {{ splitList "/" .role.to | first | toYaml }}
    name: {{ splitList "/" .role.to | last | toYaml }}
{{ end -}}
