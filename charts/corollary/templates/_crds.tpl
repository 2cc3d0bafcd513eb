{{/* The object of a text, as JSON. Fails unless the text is one CustomResourceDefinition of that name: Helm would apply what else is in it. {name, text} */}}
{{- define "corollary.crd.only" -}}
{{- $holds := list -}}{{- $objects := list -}}
{{- range regexSplit "(?m)^---" .text -1 -}}
  {{- if regexMatch "(?m)^\\s*[^#\\s]" . -}}
    {{- $object := fromYaml . -}}
    {{- $objects = append $objects $object -}}
    {{- $holds = append $holds ($object.Error | default (printf "%v %v" ($object.kind | default "no kind") (($object.metadata).name | default "without a name"))) -}}
  {{- end -}}
{{- end -}}
{{- $wanted := printf "CustomResourceDefinition %s" .name -}}
{{- if ne (join ", " $holds) $wanted -}}
  {{- fail (printf "crds.definitions.%s should be %s alone, and is %s: give each definition an entry of its own, by its name" (.name | replace "." "\\.") $wanted (join ", " $holds | default "empty")) -}}
{{- end -}}
{{- first $objects | toJson -}}
{{- end -}}

{{/* Fails if Helm would delete a CustomResourceDefinition with its release, and all custom resources with it; and if the one of the cluster
has fields that the new one has not: the API server drops their values from all objects. So does another stored version without them, unless a
webhook converts already. */}}
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
  {{- $before := dig "spec" "conversion" "strategy" "None" $old -}}
  {{- $now := dig "spec" "conversion" "strategy" (include "corollary.crd.left" $old) .new -}}
  {{- range .new.spec.versions -}}
    {{- $compared := list (get $versions .name) -}}
    {{- $isNew := and (not (hasKey $versions .name)) (not $.converted) -}}
    {{- if and (ne $now "Webhook") (or .storage $isNew (ne $before $now)) -}}
      {{- $compared = list (get $versions .name) $stored -}}
    {{- end -}}
    {{- $new := . -}}
    {{- range uniq $compared -}}
      {{- $lost := include "corollary.crd.lost" (list "" (dig "schema" "openAPIV3Schema" dict (. | default dict)) (dig "schema" "openAPIV3Schema" dict $new)) -}}
      {{- if $lost -}}
        {{- fail (printf "CustomResourceDefinition %s: version %s would lose %s, and all objects their values: rename fields by a conversion (docs/upgrading-crds.md), or set crds.force=true" $.name $new.name (trim $lost)) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* The strategy of a definition's conversion after an upgrade that says nothing of it: Helm takes away what it has written itself. */}}
{{- define "corollary.crd.left" -}}
{{- $strategy := dig "spec" "conversion" "strategy" "None" . -}}
{{- range .metadata.managedFields -}}
  {{- if and (eq .manager "helm") (dig "f:spec" "f:conversion" "f:webhook" "" (.fieldsV1 | default dict)) -}}
    {{- $strategy = "None" -}}
  {{- end -}}
{{- end -}}
{{- $strategy -}}
{{- end -}}

{{/* The paths of the fields that one schema has and the other has not, or has with another type: path, schema, other. */}}
{{- define "corollary.crd.lost" -}}
{{- $path := index . 0 -}}{{- $old := index . 1 -}}{{- $new := index . 2 -}}
{{- $types := list $old.type $new.type -}}
{{- if and $path $old.type $new.type (ne $old.type $new.type) (ne (join " " $types) "integer number") -}}
  {{- printf "%s " $path -}}
{{- else -}}
  {{- $unchecked := ternary list (list "apiVersion" "kind" "metadata" "status") (ne $path "") -}}
  {{- $keeps := eq (include "corollary.crd.open" $new) "true" -}}
  {{- $had := include "corollary.crd.fields" $old | fromYaml -}}
  {{- $has := include "corollary.crd.fields" $new | fromYaml -}}
  {{- range $key, $below := $had -}}
    {{- if not (has $key $unchecked) -}}
      {{- $at := printf "%s.%s" $path $key -}}
      {{- if hasKey $has $key -}}
        {{- include "corollary.crd.lost" (list $at $below (index $has $key)) -}}
      {{- else if kindIs "map" $new.additionalProperties -}}
        {{- include "corollary.crd.lost" (list $at $below $new.additionalProperties) -}}
      {{- else if not $keeps -}}
        {{- printf "%s " $at -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- $open := eq (include "corollary.crd.open" $old) "true" -}}
  {{- if and (or $open (and $old.additionalProperties (not $new.additionalProperties))) (not $keeps) -}}
    {{- printf "%s.* " $path -}}
  {{- else if $open -}}
    {{- range $key, $below := $has -}}
      {{- if not (or (has $key $unchecked) (hasKey $had $key)) -}}
        {{- include "corollary.crd.new" (list (printf "%s.%s" $path $key) $below) -}}
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

{{/* "true" if a schema keeps any field. */}}
{{- define "corollary.crd.open" -}}
{{- or (index . "x-kubernetes-preserve-unknown-fields") (and .additionalProperties (not (kindIs "map" .additionalProperties))) -}}
{{- end -}}

{{/* The fields of a schema, with those that x-kubernetes-embedded-resource keeps. */}}
{{- define "corollary.crd.fields" -}}
{{- $fields := .properties | default dict -}}
{{- if index . "x-kubernetes-embedded-resource" -}}
  {{- $metadata := dict "type" "object" "x-kubernetes-preserve-unknown-fields" true -}}
  {{- $fields = merge (dict "apiVersion" (dict "type" "string") "kind" (dict "type" "string") "metadata" $metadata) $fields -}}
{{- end -}}
{{- toYaml $fields -}}
{{- end -}}

{{/* What a value loses that is declared only now, where any was kept: path, schema. */}}
{{- define "corollary.crd.new" -}}
{{- $path := index . 0 -}}{{- $new := index . 1 -}}
{{- if $new.items -}}
  {{- include "corollary.crd.new" (list (printf "%s[]" $path) $new.items) -}}
{{- else if eq ($new.type | default "") "object" -}}
  {{- include "corollary.crd.lost" (list $path (dict "x-kubernetes-preserve-unknown-fields" true) $new) -}}
{{- end -}}
{{- end -}}
