"""Has one module for each subject: what its pages ask and show. Each page is a coroutine from a Visit to an Answer."""
