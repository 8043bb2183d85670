package org.ondeviceprofiler.core

/** A string. */
public data class JsonText(public val value: String) : Json
