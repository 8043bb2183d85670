package org.ondeviceprofiler.core

/** The system's thermal status (0 none to 6 shutdown) and headroom (1.0 where throttling is severe). */
public data class ThermalReading(public val status: Long?, public val headroom: Double?)
