{{/*
All operators as objects, as JSON: a map from metadata.name to the whole config, from operators and operatorFiles alike.

  {{- range $name, $operator := include "corollary.operators" . | fromJson }}

What templates rely on is checked here: metadata.name, watch.apiVersion, watch.kind (except with a source), and that downstreams is a list. So are
keys, and values that are one of a few words, since values.schema.json checks operators, though not operatorFiles. The command
checks all of them, and all of that, before it starts.
*/}}
{{- define "corollary.operators" -}}
{{- $operators := dict -}}
{{- $keys := .Files.Get "files/config.yaml" | fromYaml -}}
{{- range $key, $file := include "corollary.operatorTexts" . | fromJson -}}
  {{- $operator := fromYaml $file.text -}}
  {{- with include "corollary.wrong" (dict "operator" $operator "text" $file.text "keys" $keys) -}}
    {{- fail (printf "%s is not a config of an operator: %s; corollary check -c FILE reports all errors" $file.from .) -}}
  {{- end -}}
  {{- with include "corollary.lacking" (dict "operator" $operator "files" $.Values.files) -}}
    {{- fail (printf "%s names a missing file: %s" $file.from .) -}}
  {{- end -}}
  {{- with $operator.conventionsFile | toString | clean -}}
    {{- $path := . -}}
    {{- with include "corollary.wrongConventions" (dict "text" (get (default dict $.Values.files) $path) "keys" $keys) -}}
      {{- fail (printf "files.%s is not a file of conventions: %s" ($path | replace "." "\\.") .) -}}
    {{- end -}}
  {{- end -}}
  {{- $name := $operator.metadata.name -}}
  {{- if hasKey $operators $name -}}
    {{- fail (printf "%s: another operator is called %s: give each another metadata.name" $file.from $name) -}}
  {{- end -}}
  {{- $_ := set $operators $name $operator -}}
{{- end -}}
{{- toJson $operators -}}
{{- end -}}

{{/* What keeps the text of a file, and the object that it holds, from being an operator's config; nothing where it may be one. {operator, text, keys} */}}
{{- define "corollary.wrong" -}}
{{- $operator := .operator -}}
{{- if and (not (contains "\n" .text)) (regexMatch "[.]ya?ml$" .text) -}}
  it is the name of a file, {{ .text }}: give the text with --set-file, not with --set
{{- else if $operator.Error -}}
  {{ $operator.Error }}
{{- else if ne (printf "%v %v" $operator.apiVersion $operator.kind) "corollary.dev/v1alpha1 Operator" -}}
  it should begin with apiVersion: corollary.dev/v1alpha1 and kind: Operator (a file that configs name belongs under files)
{{- else -}}
  {{- $missing := list -}}
  {{- range $path := empty $operator.source | not | ternary (list "metadata.name") (list "metadata.name" "watch.apiVersion" "watch.kind") -}}
    {{- $keys := splitList "." $path -}}
    {{- $parent := get $operator (first $keys) -}}
    {{- $value := kindIs "map" $parent | ternary (get (default dict $parent) (last $keys)) "" -}}
    {{- if or (not $value) (not (kindIs "string" $value)) -}}
      {{- $missing = append $missing $path -}}
    {{- end -}}
  {{- end -}}
  {{- if not (kindIs "slice" $operator.downstreams) -}}
    {{- $missing = append $missing "downstreams" -}}
  {{- end -}}
  {{- $problems := include "corollary.unknown" (dict "value" $operator "keys" .keys "path" "") | trim | splitList "\n" | compact -}}
  {{- with $missing -}}
    {{- $problems = prepend $problems (printf "it has no %s" (join ", no " .)) -}}
  {{- end -}}
  {{- join ";\n  " $problems -}}
{{- end -}}
{{- end -}}

{{/* What keeps the text of a file from being the conventions that a config names; nothing where it may be them. {text, keys} */}}
{{- define "corollary.wrongConventions" -}}
{{- with .text -}}
{{- $file := fromYaml . -}}
{{- if $file.Error -}}
  {{ $file.Error }}
{{- else if ne (printf "%v %v" $file.apiVersion $file.kind) "corollary.dev/v1alpha1 Conventions" -}}
  it should begin with apiVersion: corollary.dev/v1alpha1 and kind: Conventions
{{- else -}}
  {{- include "corollary.unknown" (dict "value" $file "keys" (pick $.keys "apiVersion" "kind" "conventions") "path" "") | trim | replace "\n" ";\n  " -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The keys of a config that no config has, and the words that their keys do not take, a line each: {value, keys, path}, the keys as
files/config.yaml has them.
*/}}
{{- define "corollary.unknown" -}}
{{- $keys := .keys -}}
{{- $path := .path -}}
{{- if kindIs "slice" .value -}}
  {{- range $i, $item := .value -}}
    {{- include "corollary.unknown" (dict "value" $item "keys" $keys "path" (printf "%s[%d]" $path $i)) -}}
  {{- end -}}
{{- else if and $keys (kindIs "map" $keys) (kindIs "map" .value) -}}
  {{- range $key, $value := .value -}}
    {{- $at := printf "%s.%s" $path $key | trimPrefix "." -}}
    {{- if hasKey $keys $key -}}
      {{- include "corollary.unknown" (dict "value" $value "keys" (get $keys $key) "path" $at) -}}
    {{- else -}}
      {{- printf "%s: unknown field: valid fields are %s\n" $at (keys $keys | sortAlpha | join ", ") -}}
    {{- end -}}
  {{- end -}}
{{- else if and .value (kindIs "slice" $keys) (kindIs "string" .value) (not (has .value $keys)) -}}
  {{- printf "%s is %s: it may be %s\n" $path .value (join ", " $keys) -}}
{{- end -}}
{{- end -}}

{{/* Which file a config names that is not among the files, and how to give it; nothing where all are there. {operator, files} */}}
{{- define "corollary.lacking" -}}
{{- $named := list .operator.conventionsFile .operator.helpersFile -}}
{{- range $place := append .operator.downstreams (get (default dict .operator.deletion) "before") -}}
  {{- if kindIs "map" $place -}}
    {{- $named = append $named $place.templateFile -}}
  {{- end -}}
{{- end -}}
{{- $files := default dict .files -}}
{{- $lacking := list -}}
{{- range $path := compact $named | uniq -}}
  {{- if not (get $files (clean (toString $path))) -}}
    {{- $lacking = append $lacking $path -}}
  {{- end -}}
{{- end -}}
{{- if $lacking -}}
  {{ join ", " $lacking }}: {{ if not (regexMatch "^(/|[.][.]/)" (first $lacking | clean)) -}}
  add --set-file 'files.{{ first $lacking | clean | replace "." "\\." }}=FILE', or {{ end -}}
  let corollary generate chart-values -c CONFIG write the values with all files that it names
{{- end -}}
{{- end -}}

{{/*
The config files, as JSON: a map from each file's key to {text: what to mount, from: the value that it comes from}.
*/}}
{{- define "corollary.operatorTexts" -}}
{{- $texts := dict -}}
{{- range $key, $operator := .Values.operators -}}
  {{- if $operator -}}
    {{- $metadata := default dict $operator.metadata -}}
    {{- if ne (default $key $metadata.name) $key -}}
      {{- fail (printf "operators.%s has metadata.name %s: leave metadata out, or give the key that name" $key $metadata.name) -}}
    {{- end -}}
    {{- $head := dict "apiVersion" "corollary.dev/v1alpha1" "kind" "Operator" "metadata" (dict "name" $key) -}}
    {{- $_ := set $texts $key (dict "from" (printf "operators.%s" $key) "text" (printf "%s\n" (toYaml (merge dict $operator $head)))) -}}
  {{- end -}}
{{- end -}}
{{- range $key, $text := .Values.operatorFiles -}}
  {{- if $text -}}
    {{- if hasKey $texts $key -}}
      {{- fail (printf "operatorFiles.%s: operators.%s would be mounted as the same file: rename one" $key $key) -}}
    {{- end -}}
    {{- $_ := set $texts $key (dict "from" (printf "operatorFiles.%s" $key) "text" $text) -}}
  {{- end -}}
{{- end -}}
{{- if not (or $texts .Values.conversion.crds .Values.conversion.verify .Values.conversion.migrate) -}}
  {{- $missing := list "no operator is given: set operators in a values file, or add --set-file operatorFiles.NAME=FILE with the file of a config" -}}
  {{- if not .Values.image.repository -}}
    {{- $missing = append $missing (include "corollary.noImage" .) -}}
  {{- end -}}
  {{- fail (join "\n" $missing) -}}
{{- end -}}
{{- toJson $texts -}}
{{- end -}}
