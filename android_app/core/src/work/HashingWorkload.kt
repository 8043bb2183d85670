package org.ondeviceprofiler.core

import java.security.MessageDigest

/**
 * Hashes the same bytes a few times: an interruption only lengthens single rounds.
 *
 * After the thermal throttle detector of AndroidX Benchmark, which compares such a workload with its own first time.
 */
public class HashingWorkload(private val clock: Clock) : Workload {
    // 256 KiB stay in a core's own cache; SHA-256 takes a number of cycles that depends on nothing else.
    private val data = ByteArray(256 * 1024)
    private val digest = MessageDigest.getInstance("SHA-256")

    override fun fastestNs(rounds: Int): Long = (0 until rounds).minOf { round() }

    private fun round(): Long {
        val startNs = clock.bootNs()
        digest.digest(data)
        return clock.bootNs() - startNs
    }
}
