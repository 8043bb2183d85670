package org.ondeviceprofiler.virtual

/** One action that is due at `atNs` (a delay until time is driven), and again after `intervalNs` where there is one. */
internal class Tick(var atNs: Long, val intervalNs: Long?, val number: Long, val action: () -> Unit) {
    @Volatile
    var stopped: Boolean = false
}
