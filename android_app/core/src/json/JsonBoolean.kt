package org.ondeviceprofiler.core

/** True or false. */
public data class JsonBoolean(public val value: Boolean) : Json
