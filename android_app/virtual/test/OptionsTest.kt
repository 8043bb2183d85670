package org.ondeviceprofiler.virtual

import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

class OptionsTest {
    private fun refusal(vararg arguments: String): String =
        assertThrows(IllegalArgumentException::class.java) { Options.parse(arguments.toList()) }.message.orEmpty()

    @Test
    fun `what is given is taken, and the rest has defaults`() {
        val options = Options.parse(listOf("--model", "127.0.0.1:80", "--storage", "/a"))
        val found = options.run { listOf(storage, root, modelHost, modelPort, idleTimeoutMs) }
        assertEquals(listOf("/a", "/", "127.0.0.1", "80", "30000"), found.map { it.toString() })
    }

    @Test
    fun `what is missing or unknown is named`() {
        assertTrue("--storage is missing" in refusal("--model", "127.0.0.1:80"))
        assertTrue("unknown option --color" in refusal("--color", "red"))
        assertTrue("--model lacks its value" in refusal("--model"))
        assertTrue("--model is not HOST:PORT" in refusal("--storage", "/a", "--model", "here"))
    }
}
