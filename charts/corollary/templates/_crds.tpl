{{/* Fails if Helm would delete a CustomResourceDefinition with its release, and all custom resources with it; and if the one of the cluster
has fields that the new one has not: the API server drops their values from all objects. */}}
{{- define "corollary.crd.keeps" -}}
{{- if ne (get ((.new.metadata).annotations | default dict) "helm.sh/resource-policy") "keep" -}}
  {{- fail (printf "CustomResourceDefinition %s: Helm would delete it with the release, and all custom resources with it: give it the annotation helm.sh/resource-policy: keep, as corollary generate chart-values does" .name) -}}
{{- end -}}
{{- $old := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name -}}
{{- if and $old (not .force) -}}
  {{- $versions := dict -}}{{- $stored := dict -}}
  {{- range $old.spec.versions -}}
    {{- $_ := set $versions .name . -}}
    {{- if .storage -}}{{- $stored = . -}}{{- end -}}
  {{- end -}}
  {{- $converted := or .converted (eq (dig "spec" "conversion" "strategy" "None" .new) "Webhook") -}}
  {{- range .new.spec.versions -}}
    {{- $before := get $versions .name | default (ternary dict $stored $converted) -}}
    {{- $lost := include "corollary.crd.lost" (list "" (dig "schema" "openAPIV3Schema" dict $before) (dig "schema" "openAPIV3Schema" dict .)) -}}
    {{- if $lost -}}
      {{- fail (printf "CustomResourceDefinition %s: version %s would lose %s, and all objects their values: rename fields by a conversion (docs/upgrading-crds.md), or set crds.force=true" $.name .name (trim $lost)) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* The paths of the fields of the spec that one schema has and the other has not, or has with another type: path, schema, other. */}}
{{- define "corollary.crd.lost" -}}
{{- $path := index . 0 -}}{{- $old := index . 1 -}}{{- $new := index . 2 -}}
{{- $types := list $old.type $new.type -}}
{{- if and $path $old.type $new.type (ne $old.type $new.type) (ne (join " " $types) "integer number") -}}
  {{- printf "%s " $path -}}
{{- else -}}
  {{- $keeps := index $new "x-kubernetes-preserve-unknown-fields" -}}
  {{- range $key, $below := $old.properties -}}
    {{- if or $path (eq $key "spec") -}}
      {{- $at := printf "%s.%s" $path $key -}}
      {{- if hasKey ($new.properties | default dict) $key -}}
        {{- include "corollary.crd.lost" (list $at $below (index $new.properties $key)) -}}
      {{- else if kindIs "map" $new.additionalProperties -}}
        {{- include "corollary.crd.lost" (list $at $below $new.additionalProperties) -}}
      {{- else if not (or $keeps $new.additionalProperties) -}}
        {{- printf "%s " $at -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- $open := or (index $old "x-kubernetes-preserve-unknown-fields") (and $old.additionalProperties (not $new.additionalProperties)) -}}
  {{- if and $path $open (not $keeps) -}}
    {{- printf "%s.* " $path -}}
  {{- else if and $path $open -}}
    {{- range $key, $below := $new.properties -}}
      {{- if and (eq $below.type "object") (not (hasKey ($old.properties | default dict) $key)) -}}
        {{- include "corollary.crd.lost" (list (printf "%s.%s" $path $key) (dict "x-kubernetes-preserve-unknown-fields" true) $below) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- if and $old.items $new.items -}}
    {{- include "corollary.crd.lost" (list (printf "%s[]" $path) $old.items $new.items) -}}
  {{- end -}}
  {{- if and (kindIs "map" $old.additionalProperties) (kindIs "map" $new.additionalProperties) -}}
    {{- include "corollary.crd.lost" (list (printf "%s.*" $path) $old.additionalProperties $new.additionalProperties) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
