{{/* The key under which a file in a folder stands in its ConfigMap. */}}
{{- define "corollary.fileKey" -}}
{{- replace "/" "__" . -}}
{{- end -}}

{{/*
What is mounted beside the configs: the configs and the files that are in no folder, as JSON, by name. Each *.yaml of that
folder is read as a config, so that another one there can only hold shared conventions, a conversion, a certificate or an activation.
*/}}
{{- define "corollary.topFiles" -}}
{{- $data := dict -}}
{{- range $key, $file := include "corollary.operatorTexts" . | fromJson -}}
  {{- $_ := set $data (printf "%s.yaml" $key) $file.text -}}
{{- end -}}
{{- range $path, $text := .Values.files -}}
  {{- if and $text (not (contains "/" $path)) -}}
    {{- if hasKey $data $path -}}
      {{- fail (printf "files.%s: a config is mounted as that file: give it another name" ($path | replace "." "\\.")) -}}
    {{- end -}}
    {{- if and (regexMatch "[.]ya?ml$" $path) (not (regexMatch "(?m)^[\"']?kind[\"']?:\\s*[\"']?(Conventions|Conversion|ConversionCertificate|Activation)\\b" $text)) -}}
      {{- fail (printf "files.%s would be read as a config: rename it, or put it into a folder, such as templates/%s (only files of kind: Conventions, Conversion, ConversionCertificate and Activation are allowed there)" ($path | replace "." "\\.") $path) -}}
    {{- end -}}
    {{- $_ := set $data $path $text -}}
  {{- end -}}
{{- end -}}
{{- toJson $data -}}
{{- end -}}

{{/* The files in folders, as JSON: path to text. */}}
{{- define "corollary.folderFiles" -}}
{{- $files := dict -}}
{{- $keys := dict -}}
{{- range $path, $text := .Values.files -}}
  {{- if and $text (contains "/" $path) -}}
    {{- $key := include "corollary.fileKey" $path -}}
    {{- with get $keys $key -}}
      {{- fail (printf "files: %s and %s would have one key in a ConfigMap, %s: rename one" . $path $key) -}}
    {{- end -}}
    {{- $_ := set $keys $key $path -}}
    {{- $_ := set $files $path $text -}}
  {{- end -}}
{{- end -}}
{{- toJson $files -}}
{{- end -}}

{{/*
The ConfigMaps of config files: {root, name, annotations}. The data does not come last: Helm trims the end of each document, and the
last text might lose its last line's end.
*/}}
{{- define "corollary.configMaps" -}}
{{- $metadata := dict "name" .name "namespace" .root.Release.Namespace "labels" (include "corollary.labels" .root | fromYaml) -}}
{{- with .annotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
apiVersion: v1
kind: ConfigMap
data:
  {{- include "corollary.topFiles" .root | fromJson | toYaml | nindent 2 }}
metadata:
  {{- toYaml $metadata | nindent 2 }}
{{- with include "corollary.folderFiles" .root | fromJson }}
---
apiVersion: v1
kind: ConfigMap
data:
  {{- range $path, $text := . }}
  {{- toYaml (dict (include "corollary.fileKey" $path) $text) | nindent 2 }}
  {{- end }}
metadata:
  {{- toYaml (merge (dict "name" (printf "%s-files" $.name)) $metadata) | nindent 2 }}
{{- end }}
{{ end -}}
